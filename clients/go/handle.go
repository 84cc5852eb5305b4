package koordinator

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

const (
	// responseLimit is how long a response may take beyond the time of a long poll.
	responseLimit = 30 * time.Second
	// pollLimit is the longest long poll; a longer wait uses several.
	pollLimit = time.Minute
	// waitLimit is the default limit of waits.
	waitLimit = 30 * time.Second
)

// Offset is the committed offset of a partition.
type Offset struct {
	Topic     string `json:"topic"`
	Partition int    `json:"partition"`
	Offset    int    `json:"offset"`
}

// Bytes are the key, value or header of a stored record; nil if there is none.
type Bytes []byte

// UnmarshalJSON reads {"base64": …}.
func (b *Bytes) UnmarshalJSON(text []byte) error {
	var encoded *struct{ Base64 []byte }
	err := json.Unmarshal(text, &encoded)
	if *b = nil; encoded != nil {
		*b = append(Bytes{}, encoded.Base64...)
	}
	return err
}

// Header is a header of a stored record.
type Header struct {
	Key   string
	Value Bytes
}

// UnmarshalJSON reads a pair.
func (h *Header) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&h.Key, &h.Value})
}

// values are the arguments of a request.
type values map[string]any

// put adds an optional argument unless it is zero.
func (v values) put(name string, value any) {
	if !reflect.ValueOf(&value).Elem().Elem().IsValid() || reflect.ValueOf(value).IsZero() {
		return
	}
	v[name] = plain(value)
}

// plain returns a value as JSON has it: durations in ms, bytes as base64.
func plain(value any) any {
	switch value := value.(type) {
	case time.Duration:
		return value.Milliseconds()
	case []byte:
		return map[string][]byte{"base64": value}
	case []any:
		list := make([]any, len(value))
		for at, each := range value {
			list[at] = plain(each)
		}
		return list
	case map[string][]byte:
		objects := values{}
		for name, each := range value {
			objects[name] = plain(each)
		}
		return objects
	case map[string]any:
		objects := values{}
		for name, each := range value {
			objects[name] = plain(each)
		}
		return objects
	}
	return value
}

func rows(offsets []Offset) [][]any {
	list := make([][]any, len(offsets))
	for at, each := range offsets {
		list[at] = []any{each.Topic, each.Partition, each.Offset}
	}
	return list
}

func path(format string, parts ...any) string {
	for at, each := range parts {
		parts[at] = url.PathEscape(fmt.Sprint(each))
	}
	return fmt.Sprintf(format, parts...)
}

func first(limits []time.Duration) time.Duration {
	if len(limits) == 0 {
		return 0
	}
	return limits[0]
}

// control is the connection to the control API of one cluster.
type control struct {
	url, token string
	// transport trusts the authority of the server; nil for the default one.
	transport http.RoundTripper
}

// transportOf returns a transport that trusts the authority in a PEM file; nil without a file.
func transportOf(caFile string) (http.RoundTripper, error) {
	if caFile == "" {
		return nil, nil
	}
	text, err := os.ReadFile(caFile)
	if err != nil {
		return nil, err
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: has no certificate in PEM", caFile)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: authorities}
	return transport, nil
}

// request sends a request and returns its body, which is empty for an empty result.
func (c control) request(verb, path string, v values, limit time.Duration) ([]byte, error) {
	var body io.Reader
	if verb == "GET" {
		query := url.Values{}
		for name, value := range v {
			if list, isList := value.([]string); isList {
				query[name] = list
			} else {
				query.Set(name, fmt.Sprint(value))
			}
		}
		path += "?" + query.Encode()
	} else {
		text, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	request, err := http.NewRequest(verb, c.url+path, body)
	if err != nil {
		return nil, err
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	client := http.Client{Timeout: limit + responseLimit, Transport: c.transport}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("koordinator does not answer: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		var problem struct{ Detail string }
		if json.Unmarshal(text, &problem) != nil || problem.Detail == "" {
			problem.Detail = response.Status + ": " + string(text)
		}
		err = fmt.Errorf("%s", problem.Detail)
	}
	return text, err
}

// handle is a part of a cluster. It ends the test if an operation is refused or a wait is in vain, so its methods belong
// on the goroutine of the test.
type handle struct {
	t       testing.TB
	control control
	label   string
	// group is the id of the group whose events explain a failure; reported notes that a failure has shown them.
	group    string
	reported *bool
}

func (h handle) labelled(kind string, id any) handle {
	h.label = fmt.Sprintf("%s %q", kind, fmt.Sprint(id))
	return h
}

// call performs an operation; result is a pointer, or nil.
func (h handle) call(verb, path string, v values, result any) {
	h.t.Helper()
	text, err := h.control.request(verb, path, v, 0)
	if err == nil && result != nil && len(text) > 0 {
		err = json.Unmarshal(text, result)
	}
	if err != nil {
		h.t.Fatalf("%s: %v", h.label, err)
	}
}

// poll performs an operation until isOver says so of its result, or the limit is over.
func (h handle) poll(verb, path string, v values, limit time.Duration, isOver func(text []byte) bool) {
	h.t.Helper()
	for end := time.Now().Add(limit); ; {
		left := max(min(time.Until(end), pollLimit), 0)
		v["timeout"] = left.Seconds()
		text, err := h.control.request(verb, path, v, left)
		if err != nil {
			h.t.Fatalf("%s: %v", h.label, err)
		}
		if isOver(text) || left == 0 {
			return
		}
	}
}

func (h handle) wait(name, verb, path string, v values, limit time.Duration) {
	h.t.Helper()
	if limit == 0 {
		limit = waitLimit
	}
	isMet := false
	h.poll(verb, path, v, limit, func(text []byte) bool {
		isMet = string(text) == "true"
		return isMet
	})
	if !isMet {
		delete(v, "timeout")
		conditions, _ := json.Marshal(v)
		h.fail("%s: not within %v: %s", name, limit, conditions)
	}
}

func (h handle) check(name, verb, path string, v values, limit time.Duration) []byte {
	h.t.Helper()
	var last []byte
	var result GroupCheck
	h.poll(verb, path, v, limit, func(text []byte) bool {
		last, result = text, GroupCheck{}
		return json.Unmarshal(text, &result) == nil && result.Ok
	})
	if !result.Ok {
		h.fail("%s: %s", name, result.Message)
	}
	return last
}

// fail ends the test, with the last events of the group.
func (h handle) fail(format string, values ...any) {
	h.t.Helper()
	report := ""
	if h.group != "" {
		report = "\n" + strings.TrimSpace(h.Timeline())
		*h.reported = true
	}
	h.t.Fatalf("%s: %s%s", h.label, fmt.Sprintf(format, values...), report)
}

// Timeline returns the last events as text, of a group after its state.
func (h handle) Timeline() string {
	v := values{"format": "text"}
	v.put("group", h.group)
	text, err := h.control.request("GET", "/trace", v, 0)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
