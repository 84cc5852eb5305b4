package tests

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	koordinator "koordinator.example/koordinator/clients/go"
)

var orders = koordinator.Options{Topics: map[string]int{"orders": 4}}

// join starts a member of the group svc, which stops before the cluster does.
func join(t *testing.T, k *koordinator.Cluster, clientID string, options ...kgo.Opt) {
	t.Helper()
	client, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(k.Brokers()...), kgo.ClientID(clientID), kgo.ConsumerGroup("svc"), kgo.ConsumeTopics("orders"),
		kgo.HeartbeatInterval(200 * time.Millisecond), kgo.SessionTimeout(6 * time.Second),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.AutoCommitInterval(200 * time.Millisecond),
	}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(func() { stop(); client.CloseAllowingRebalance() })
	go func() {
		for ctx.Err() == nil {
			client.PollFetches(ctx)
		}
	}()
}

func TestASecondMemberJoinsInOneRebalance(t *testing.T) {
	k := koordinator.Start(t, orders)
	group := k.Group("svc")
	join(t, k, "svc-1")
	group.WaitStable(koordinator.WaitStableOptions{Members: 1, AllOwned: true})
	rebalance := group.ExpectRebalance("member_join", func() { join(t, k, "svc-2") })
	if rebalance.Generation == nil {
		t.Fatal("no generation")
	}
	group.WaitStable(koordinator.WaitStableOptions{Members: 2, AllOwned: true})
	group.AssertOwnedExactlyOnce()
}

func TestAServerWithHTTPSIsTrustedByItsAuthority(t *testing.T) {
	k := koordinator.Start(t, koordinator.Options{Topics: orders.Topics, Arguments: []string{"--control-tls"}})
	group := k.Group("svc")
	join(t, k, "svc-1")
	group.WaitStable(koordinator.WaitStableOptions{Members: 1, AllOwned: true})
}

func TestAStaticMemberIsFencedByItsSuccessor(t *testing.T) {
	k := koordinator.Start(t, orders)
	group := k.Group("svc")
	join(t, k, "svc-1", kgo.InstanceID("worker-1"))
	group.WaitStable(koordinator.WaitStableOptions{Members: 1, AllOwned: true})
	group.AssertNoRebalance(func() {
		join(t, k, "svc-1", kgo.InstanceID("worker-1"))
		group.AssertFenced("worker-1", 30*time.Second)
	})
}

func TestAHeldCommitIsRefusedAfterTheMemberIsGone(t *testing.T) {
	k := koordinator.Start(t, orders)
	group := k.Group("svc")
	hold := group.Hold("OffsetCommit")
	k.Produce("orders", map[string]any{"value": "paid", "partition": 0})
	join(t, k, "svc-1")
	if request := hold.WaitEntered(); request.ClientID != "svc-1" {
		t.Fatalf("entered: %+v", request)
	}
	group.Evict("svc-1", koordinator.EvictOptions{AsIf: "session"})
	hold.Release()
	group.AssertRequest("OffsetCommit", koordinator.AssertRequestOptions{Error: "UNKNOWN_MEMBER_ID", Timeout: 30 * time.Second})
	committed := []koordinator.Offset{{Topic: "orders", Partition: 0, Offset: 1}}
	group.AssertCommitted(committed, 30*time.Second)
}

func TestARuleFailsACommitOnce(t *testing.T) {
	k := koordinator.Start(t, orders)
	group := k.Group("svc")
	failure := koordinator.Faults.Error("COORDINATOR_LOAD_IN_PROGRESS")
	rule := group.AddRule("OffsetCommit", failure, koordinator.RuleOptions{Times: new(1)})
	k.Produce("orders", map[string]any{"value": []byte("paid"), "partition": 1})
	join(t, k, "svc-1")
	group.AssertCommitted([]koordinator.Offset{{Topic: "orders", Partition: 1, Offset: 1}}, 30*time.Second)
	if hits := rule.Describe().Hits; hits != 1 {
		t.Fatalf("%d hits", hits)
	}
	if records := k.Topic("orders").Records(); string(records[0].Value) != "paid" {
		t.Fatalf("records: %v", records)
	}
}

func TestPuppetsPlayTheOtherMembers(t *testing.T) {
	k := koordinator.Start(t, orders)
	group := k.Group("svc")
	peer := group.CreatePuppet("peer", koordinator.CreatePuppetOptions{Topics: []string{"orders"}, SessionTimeout: 10 * time.Second})
	peer.Join()
	group.WaitStable(koordinator.WaitStableOptions{Members: 1, AllOwned: true})
	peer.Stop()
	fired := group.Advance(time.Minute, koordinator.AdvanceOptions{Expire: []string{"peer"}})
	if len(fired) != 1 || fired[0].Kind != "session" {
		t.Fatalf("fired: %+v", fired)
	}
	group.WaitState("Empty")
}

// It fails on purpose, and shows how a failed test looks.
func TestFailing(t *testing.T) {
	if os.Getenv("KOORDINATOR_FAILING") == "" {
		t.Skip("KOORDINATOR_FAILING is not set")
	}
	k := koordinator.Start(t, orders)
	join(t, k, "svc-1")
	k.Group("svc").WaitStable(koordinator.WaitStableOptions{Members: 1})
	k.Group("svc").WaitStable(koordinator.WaitStableOptions{Members: 2, Timeout: 2 * time.Second})
}
