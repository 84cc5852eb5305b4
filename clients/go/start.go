// Package koordinator tests Kafka consumers on koordinator, an emulator of Kafka's group coordinator.
//
//	func TestMyConsumer(t *testing.T) {
//		k := koordinator.Start(t, koordinator.Options{Topics: map[string]int{"orders": 4}})
//		client := startMyConsumer(k.Brokers())
//		t.Cleanup(client.Close)
//		k.Group("svc").WaitStable(koordinator.WaitStableOptions{Members: 1, AllOwned: true})
//	}
package koordinator

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

const (
	// startLimit is how long a start may take; stopLimit how long a stop may before the process is killed.
	startLimit = time.Minute
	stopLimit  = 5 * time.Second
)

// Options are those of the cluster, and the way to start it.
type Options struct {
	// Topics are created, with their numbers of partitions.
	Topics  map[string]int
	Brokers int
	// Config has broker configs, such as group.max.size.
	Config map[string]string
	// Profile is fast (the default) or kafka-defaults.
	Profile      string
	KafkaVersion string
	// Arguments are further ones of koordinator serve.
	Arguments []string
	// Command starts the server: {"uvx", "--from", "koordinator[control]", "koordinator"}. The default is
	// KOORDINATOR_COMMAND, or koordinator on PATH.
	Command []string
}

// Start starts a cluster, and waits until clients can connect. It stops at the end of the test, after the functions
// that the test gives to Cleanup later. A test that fails logs the timeline of the groups, and writes the trace.
func Start(t testing.TB, options ...Options) *Cluster {
	t.Helper()
	var o Options
	for _, each := range options {
		o = each
	}
	started, stop, err := startProcess(o)
	if err != nil {
		t.Fatalf("koordinator: %v", err)
	}
	cluster, err := connect(t, started)
	if err != nil {
		stop()
		t.Fatalf("koordinator: %v", err)
	}
	t.Cleanup(stop)
	cluster.ReportAtEnd()
	return cluster
}

// Connect connects to a server that runs already, and keeps running. Cluster.ReportAtEnd then reports as Start does.
// For https, caFile is the authority to trust, the control_ca_file of the server's first line.
func Connect(t testing.TB, controlURL, token string, caFile ...string) *Cluster {
	t.Helper()
	cluster, err := connect(t, announcement{controlURL, token, strings.Join(caFile, "")})
	if err != nil {
		t.Fatalf("koordinator: %v", err)
	}
	return cluster
}

func connect(t testing.TB, server announcement) (*Cluster, error) {
	transport, err := transportOf(server.ControlCAFile)
	if err != nil {
		return nil, err
	}
	c := control{strings.TrimSuffix(server.ControlURL, "/") + "/v1/clusters/default", server.ControlToken, transport}
	text, err := c.request("GET", "", values{}, 0)
	var info struct {
		Servers string `json:"bootstrap_servers"`
	}
	if err == nil {
		err = json.Unmarshal(text, &info)
	}
	h := handle{t: t, control: c, label: "the cluster", reported: new(bool)}
	return &Cluster{clusterOperations{h}, info.Servers}, err
}

// announcement is the first line of the server.
type announcement struct {
	ControlURL    string `json:"control_url"`
	ControlToken  string `json:"control_token"`
	ControlCAFile string `json:"control_ca_file"`
}

// ServeArguments returns the options as arguments of koordinator serve.
func (o Options) ServeArguments() []string {
	var list []string
	for topic, partitions := range o.Topics {
		list = append(list, "--topic", fmt.Sprintf("%s:%d", topic, partitions))
	}
	for name, value := range o.Config {
		list = append(list, "--config", name+"="+value)
	}
	if o.Brokers > 0 {
		list = append(list, "--brokers", fmt.Sprint(o.Brokers))
	}
	if o.Profile != "" {
		list = append(list, "--profile", o.Profile)
	}
	if o.KafkaVersion != "" {
		list = append(list, "--kafka-version", o.KafkaVersion)
	}
	return append(list, o.Arguments...)
}

func startProcess(o Options) (announcement, func(), error) {
	words := o.Command
	if len(words) == 0 {
		words = strings.Fields(os.Getenv("KOORDINATOR_COMMAND"))
	}
	if len(words) == 0 {
		words = []string{"koordinator"}
	}
	// it ends with its standard input, so also if this process is killed
	words = append(append([]string{}, words...), "serve", "--port", "0", "--control-port", "0", "--stop-with-stdin")
	server := exec.Command(words[0], append(words[1:], o.ServeArguments()...)...)
	var problems bytes.Buffer
	server.Stderr = &problems
	input, err := server.StdinPipe()
	if err != nil {
		return announcement{}, nil, err
	}
	output, err := server.StdoutPipe()
	if err != nil {
		return announcement{}, nil, err
	}
	if err := server.Start(); err != nil {
		return announcement{}, nil, fmt.Errorf("%w; choose one of:\n%s", err, strings.Join([]string{
			"  pip install 'koordinator[control]'    with Python 3.11 or newer",
			`  koordinator.Options{Command: []string{"uvx", "--from", "koordinator[control]", "koordinator"}}`,
		}, "\n"))
	}
	stop := func() {
		input.Close()
		kill := time.AfterFunc(stopLimit, func() { server.Process.Kill() })
		io.Copy(io.Discard, output)
		server.Wait()
		kill.Stop()
	}
	late := time.AfterFunc(startLimit, func() { server.Process.Kill() })
	line, err := bufio.NewReader(output).ReadBytes('\n')
	late.Stop()
	var started announcement
	if err == nil {
		err = json.Unmarshal(line, &started)
	}
	if err != nil {
		stop()
		err = fmt.Errorf("%s has not started (%v):\n%s", strings.Join(server.Args, " "), server.ProcessState, problems.String())
	}
	return started, stop, err
}
