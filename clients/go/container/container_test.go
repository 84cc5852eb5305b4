package container_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/twmb/franz-go/pkg/kgo"
	koordinator "koordinator.example/koordinator/clients/go"
	"koordinator.example/koordinator/clients/go/container"
)

func image() string {
	if name := os.Getenv("KOORDINATOR_IMAGE"); name != "" {
		return name
	}
	return "koordinator"
}

func TestAConsumerConnectsToTheMappedPorts(t *testing.T) {
	testcontainers.SkipIfProviderIsNotHealthy(t)
	k := container.Start(t, image(), koordinator.Options{Topics: map[string]int{"orders": 4}, Brokers: 2})
	if len(k.Brokers()) != 2 {
		t.Fatalf("bootstrap servers: %s", k.BootstrapServers)
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(k.Brokers()...), kgo.ClientID("svc-1"), kgo.ConsumerGroup("svc"), kgo.ConsumeTopics("orders"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.HeartbeatInterval(200*time.Millisecond),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseAllowingRebalance)
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(stop)
	group := k.Group("svc")
	for partition := range 4 {
		k.Produce("orders", map[string]any{"value": "paid", "partition": partition})
	}
	for records := 0; records < 4; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			t.Fatal(err)
		}
		records += fetches.NumRecords()
	}
	group.WaitStable(koordinator.WaitStableOptions{Members: 1, AllOwned: true})
	generation := group.Generation()
	group.ExpireSession("svc-1")
	go client.PollFetches(ctx)
	group.WaitStable(koordinator.WaitStableOptions{Members: 1, AllOwned: true, AfterGeneration: generation})
}

func TestFailing(t *testing.T) {
	testcontainers.SkipIfProviderIsNotHealthy(t)
	if os.Getenv("KOORDINATOR_FAILING") == "" {
		t.Skip("fails as intended, with KOORDINATOR_FAILING")
	}
	k := container.Start(t, image(), koordinator.Options{Topics: map[string]int{"orders": 4}})
	k.Group("svc").CreatePuppet("svc-1", koordinator.CreatePuppetOptions{Topics: []string{"orders"}}).Join()
	k.Group("svc").WaitStable(koordinator.WaitStableOptions{Members: 2, Timeout: 2 * time.Second})
}
