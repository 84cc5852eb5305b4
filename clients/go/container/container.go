// Package container starts koordinator in a container, with testcontainers-go.
//
//	func TestMyConsumer(t *testing.T) {
//		k := container.Start(t, "koordinator", koordinator.Options{Topics: map[string]int{"orders": 4}})
//		client := startMyConsumer(k.Brokers())
//		t.Cleanup(client.Close)
//		k.Group("svc").WaitStable(koordinator.WaitStableOptions{Members: 1, AllOwned: true})
//	}
package container

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
	koordinator "koordinator.example/koordinator/clients/go"
)

const (
	controlPort = 9080
	// kafkaPort is the first broker's; each further broker has the next one.
	kafkaPort = 9092
)

// Start starts a container of an image, and waits until clients can connect to its mapped ports, which the brokers
// advertise. The container is removed at the end of the test. A test that fails logs the timeline of the groups, and
// writes the trace. Further customizers, such as a network, are those of testcontainers-go.
func Start(
	t testing.TB, image string, options koordinator.Options, more ...testcontainers.ContainerCustomizer,
) *koordinator.Cluster {
	t.Helper()
	ctx := context.Background()
	token := rand.Text()
	ports := []string{tcp(controlPort)}
	for index := range max(options.Brokers, 1) {
		ports = append(ports, tcp(kafkaPort+index))
	}
	ours := []testcontainers.ContainerCustomizer{
		testcontainers.WithCmd(append([]string{"serve"}, options.ServeArguments()...)...),
		testcontainers.WithEnv(map[string]string{"KOORDINATOR_CONTROL_TOKEN": token}),
		testcontainers.WithExposedPorts(ports...),
		testcontainers.WithWaitStrategy(wait.ForHTTP("/readyz").WithPort(tcp(controlPort))),
	}
	started, err := testcontainers.Run(ctx, image, append(ours, more...)...)
	testcontainers.CleanupContainer(t, started)
	if err != nil {
		t.Fatalf("koordinator: %v", err)
	}
	host, err := started.Host(ctx)
	if err != nil {
		t.Fatalf("koordinator: %v", err)
	}
	mapped := func(port int) int {
		t.Helper()
		found, err := started.MappedPort(ctx, tcp(port))
		if err != nil {
			t.Fatalf("koordinator: %v", err)
		}
		return int(found.Num())
	}
	url := fmt.Sprintf("http://%s:%d", host, mapped(controlPort))
	control := koordinator.Connect(t, url, token)
	for index, each := range control.NodeStates() {
		control.Node(each.Node).Advertise(host, mapped(kafkaPort+index))
	}
	// again, since the advertised addresses are those of clients
	cluster := koordinator.Connect(t, url, token)
	cluster.ReportAtEnd()
	return cluster
}

func tcp(port int) string {
	return fmt.Sprintf("%d/tcp", port)
}
