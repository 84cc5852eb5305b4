package tests

import (
	"context"
	"testing"
	"time"

	"github.com/IBM/sarama"
	koordinator "koordinator.example/koordinator/clients/go"
)

// handler marks every record.
type handler struct{}

func (handler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		session.MarkMessage(message, "")
	}
	return nil
}

// joinSarama starts a member of the group svc, which stops before the cluster does.
func joinSarama(t *testing.T, k *koordinator.Cluster, clientID string) {
	t.Helper()
	config := sarama.NewConfig()
	config.ClientID = clientID
	config.Consumer.Group.Heartbeat.Interval = 200 * time.Millisecond
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Interval = 200 * time.Millisecond
	consumer, err := sarama.NewConsumerGroup(k.Brokers(), "svc", config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(func() { stop(); consumer.Close() })
	go func() {
		for ctx.Err() == nil {
			consumer.Consume(ctx, []string{"orders"}, handler{})
		}
	}()
}

func TestSaramaReturnsAfterItsSessionExpired(t *testing.T) {
	k := koordinator.Start(t, orders)
	group := k.Group("svc")
	joinSarama(t, k, "svc-1")
	group.WaitStable(koordinator.WaitStableOptions{Members: 1, AllOwned: true})
	generation := group.Generation()
	group.ExpireSession("svc-1")
	group.WaitStable(koordinator.WaitStableOptions{Members: 1, AllOwned: true, AfterGeneration: generation})
	k.Produce("orders", map[string]any{"value": "paid", "partition": 2})
	group.AssertCommitted([]koordinator.Offset{{Topic: "orders", Partition: 2, Offset: 1}}, 30*time.Second)
}
