package koordinator

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Cluster is a running cluster. Its methods end the test if koordinator refuses them.
type Cluster struct {
	clusterOperations
	// BootstrapServers are the addresses for clients: "127.0.0.1:40123".
	BootstrapServers string
}

// Brokers returns the bootstrap servers as a list.
func (c *Cluster) Brokers() []string {
	return strings.Split(c.BootstrapServers, ",")
}

// Group returns the handle of a consumer group, which need not exist yet.
func (c *Cluster) Group(id string) *Group {
	h := c.labelled("group", id)
	h.group = id
	return &Group{groupOperations{h, id}}
}

// CreateTopic creates a topic with records: strings, []byte, pairs of key and value as []any, or map[string]any with
// some of key, value, partition, timestamp and headers.
func (c *Cluster) CreateTopic(name string, partitions int, records ...any) Topic {
	c.t.Helper()
	topic := c.Topic(name)
	topic.Create(CreateOptions{Partitions: partitions})
	if len(records) > 0 {
		topic.Produce(records)
	}
	return topic
}

// Produce appends records to a topic; CreateTopic has their forms.
func (c *Cluster) Produce(topic string, records ...any) int {
	c.t.Helper()
	return c.Topic(topic).Produce(records)
}

// AddRule adds a rule as Group.AddRule does, for requests of every group, and of none.
func (c *Cluster) AddRule(api string, action Action, options ...RuleOptions) Rule {
	c.t.Helper()
	return c.addRule(api, action, values{}, options)
}

// Hold parks requests as Group.Hold does, of every group.
func (c *Cluster) Hold(api string, conditions ...Conditions) *Hold {
	c.t.Helper()
	return c.addHold(api, values{}, conditions)
}

// AddNode adds a broker to the cluster and starts it.
func (c *Cluster) AddNode() Node {
	c.t.Helper()
	var id int
	c.call("POST", "/nodes", values{}, &id)
	return c.Node(id)
}

// Check fails the test if a rule that is not optional never acted. The end of a test that passes calls it.
func (c *Cluster) Check() {
	c.t.Helper()
	for _, each := range c.UnusedRules() {
		c.t.Errorf("a rule was never used (Optional allows it): %s: %s", each.Text, each.Near)
	}
}

// ReportAtEnd calls Check at the end of a test that passes. For a test that fails it logs the timeline of the groups,
// and writes the trace. Start calls it.
func (c *Cluster) ReportAtEnd() {
	c.t.Cleanup(func() {
		if !c.t.Failed() {
			c.Check()
		}
		if c.t.Failed() {
			c.explain()
		}
	})
}

var notInNames = regexp.MustCompile(`[^\w.]+`)

// WriteTrace writes the trace to test-results/NAME, or below KOORDINATOR_TRACE_DIR: a page, a file for Perfetto, text,
// and JSON lines. It returns the path of the page.
func (c *Cluster) WriteTrace(name string) (string, error) {
	folder := os.Getenv("KOORDINATOR_TRACE_DIR")
	if folder == "" {
		folder = "test-results"
	}
	folder = filepath.Join(folder, notInNames.ReplaceAllString(name, "-"))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	files := map[string]string{"trace.html": "html", "trace.json": "perfetto", "trace.txt": "text", "trace.jsonl": "json"}
	for file, format := range files {
		text, err := c.control.request("GET", "/trace", values{"format": format}, 0)
		if err == nil && format == "json" {
			text, err = c.lines(text)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, file), text, 0o644)
		}
		if err != nil {
			return "", err
		}
	}
	return filepath.Join(folder, "trace.html"), nil
}

// lines returns the header and the events, one in each line.
func (c *Cluster) lines(events []byte) ([]byte, error) {
	text, err := c.control.request("GET", "/trace/header", values{}, 0)
	if err != nil {
		return nil, err
	}
	var list []json.RawMessage
	if err := json.Unmarshal(events, &list); err != nil {
		return nil, err
	}
	text = append(text, '\n')
	for _, each := range list {
		text = append(append(text, each...), '\n')
	}
	return text, nil
}

// explain logs the timeline of a failed test, and writes its trace.
func (c *Cluster) explain() {
	if !*c.reported {
		c.t.Logf("koordinator timeline:\n%s", strings.TrimRight(c.Timeline(), "\n"))
	}
	if page, err := c.WriteTrace(c.t.Name()); err != nil {
		c.t.Logf("the trace could not be written: %v", err)
	} else {
		c.t.Logf("full trace: %s", page)
	}
}

// Group is a consumer group: waits, assertions, clock, overrides, rules, holds and puppets. It need not exist yet.
type Group struct {
	groupOperations
}

// State returns Empty, PreparingRebalance, CompletingRebalance or Stable; Dead if the group does not exist.
func (g *Group) State() string {
	g.t.Helper()
	return g.Describe().State
}

// Generation returns the number of completed join phases; -1 without a group.
func (g *Group) Generation() int {
	g.t.Helper()
	return g.Describe().Generation
}

// Assignment returns the partitions by topic of each member, by its group.instance.id or its member id.
func (g *Group) Assignment() map[string]map[string][]int {
	g.t.Helper()
	owned := map[string]map[string][]int{}
	for _, each := range g.Describe().Members {
		label := each.InstanceID
		if label == "" {
			label = each.MemberID
		}
		owned[label] = each.Assignment
	}
	return owned
}

// AddRule adds a rule for requests of this group: group.AddRule("OffsetCommit", Faults.LoseReply(), RuleOptions{Nth: 2}).
// A rule that never acts fails the test, unless it is optional.
func (g *Group) AddRule(api string, action Action, options ...RuleOptions) Rule {
	g.t.Helper()
	return g.addRule(api, action, values{"group": exactly(g.ID)}, options)
}

// Hold parks requests of this group before they are applied: group.Hold("OffsetCommit", Conditions{ClientID: "svc-1"}).
// They continue at Release, at Remove, and at the end of the test.
func (g *Group) Hold(api string, conditions ...Conditions) *Hold {
	g.t.Helper()
	return g.addHold(api, values{"group": exactly(g.ID)}, conditions)
}

// Lockstep applies requests of the group in rounds, one of each client.
func (g *Group) Lockstep(api string, clients ...string) *Lockstep {
	g.t.Helper()
	var info HoldInfo
	g.call("POST", "/locksteps", values{"api": api, "group": exactly(g.ID), "clients": clients}, &info)
	return &Lockstep{holdOperations{g.labelledHold(info.ID), info.ID}, 0}
}

// ExpectRebalance expects a rebalance to begin in the block, of any cause if it is empty. It waits at the end of the
// block until the rebalance has completed, and returns it.
func (g *Group) ExpectRebalance(cause string, block func(), timeout ...time.Duration) Rebalance {
	g.t.Helper()
	var since int
	g.call("GET", "/trace/position", values{}, &since)
	block()
	limit := first(timeout)
	if limit == 0 {
		limit = waitLimit
	}
	v := values{"since": since}
	v.put("cause", cause)
	var result RebalanceCheck
	text := g.check("ExpectRebalance", "POST", path("/groups/%s/verify/rebalanced", g.ID), v, limit)
	if err := json.Unmarshal(text, &result); err != nil || result.Rebalance == nil {
		g.t.Fatalf("%s: no rebalance: %v", g.label, err)
	}
	return *result.Rebalance
}

// AssertNoRebalance asserts that no rebalance begins in the block.
func (g *Group) AssertNoRebalance(block func()) {
	g.t.Helper()
	var since int
	g.call("GET", "/trace/position", values{}, &since)
	block()
	g.check("AssertNoRebalance", "POST", path("/groups/%s/verify/not_rebalanced", g.ID), values{"since": since}, 0)
}

// Hold parks matching requests until Release, or Remove.
type Hold struct {
	holdOperations
}

// WaitEntered waits until a request is parked, and returns it.
func (h *Hold) WaitEntered(timeout ...time.Duration) Request {
	h.t.Helper()
	limit := first(timeout)
	if limit == 0 {
		limit = waitLimit
	}
	var entry HoldEntry
	h.poll("GET", path("/holds/%s/entered", h.ID), values{}, limit, func(text []byte) bool {
		entry = HoldEntry{}
		return json.Unmarshal(text, &entry) == nil && (entry.Ok || entry.Deadlock != "")
	})
	if entry.Deadlock != "" {
		h.fail("%s", entry.Deadlock)
	} else if entry.First == nil {
		h.fail("nothing entered within %v: %s", limit, h.Near())
	}
	return *entry.First
}

// Lockstep applies requests of named clients in rounds, one of each client.
type Lockstep struct {
	holdOperations
	rounds int
}

// WaitRound waits for the next complete round.
func (l *Lockstep) WaitRound() {
	l.t.Helper()
	var round LockstepRound
	l.poll("GET", path("/holds/%s/round", l.ID), values{"number": l.rounds + 1}, waitLimit, func(text []byte) bool {
		round = LockstepRound{}
		return json.Unmarshal(text, &round) == nil && round.Ok
	})
	if !round.Ok {
		l.fail("round %d: none of %s within %v", l.rounds+1, strings.Join(round.Missing, ", "), waitLimit)
	}
	l.rounds++
}

func (h handle) addRule(api string, action Action, match values, options []RuleOptions) Rule {
	h.t.Helper()
	rule := values{"match": match, "action": action.values}
	for _, each := range options {
		each.Conditions.into(match)
		rule["trigger"] = each.trigger()
		rule.put("id", each.ID)
		rule.put("optional", each.Optional)
	}
	match["api"] = api
	var info RuleInfo
	h.call("POST", "/rules", values{"rule": rule}, &info)
	return Rule{h.labelled("rule", info.ID), info.ID}
}

func (h handle) addHold(api string, match values, conditions []Conditions) *Hold {
	h.t.Helper()
	for _, each := range conditions {
		each.into(match)
	}
	match["api"] = api
	var info HoldInfo
	h.call("POST", "/holds", values{"match": match}, &info)
	return &Hold{holdOperations{h.labelledHold(info.ID), info.ID}}
}

func (h handle) labelledHold(id string) handle {
	return h.labelled("hold", fmt.Sprintf("%s of %s", id, h.label))
}

var wildcards = regexp.MustCompile(`[*?[]`)

// exactly returns a glob that matches only this text.
func exactly(text string) string {
	return wildcards.ReplaceAllString(text, "[$0]")
}
