// Members of groups with franz-go, driven by lines on standard input: see line_clients.py. The argument is the address.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const limit = 30 * time.Second

// member is a client and its partitions by its own callbacks; a revocation waits while `revocation` is locked.
type member struct {
	client     *kgo.Client
	revocation sync.Mutex
	mutex      sync.Mutex
	owned      map[string]bool
	first      string
}

type members struct {
	servers []string
	all     map[string]*member
}

func main() {
	all := members{strings.Split(os.Args[1], ","), map[string]*member{}}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		result, err := all.perform(strings.Split(lines.Text(), " "))
		if err != nil {
			fmt.Println("error", strings.ReplaceAll(err.Error(), "\n", " "))
		} else {
			fmt.Println("ok", result)
		}
	}
}

func (all *members) perform(words []string) (string, error) {
	one := all.all[words[1]]
	switch words[0] {
	case "join":
		joined, err := all.join(words[2], words[3], words[4], words[5])
		all.all[words[1]] = joined
		return "", err
	case "owned":
		count, err := strconv.Atoi(words[2])
		if err != nil {
			return "", err
		}
		return one.wait(count)
	case "first":
		return one.read()
	case "block":
		one.revocation.Lock()
	case "free":
		one.revocation.Unlock()
	case "commit":
		return "", one.commit(words[2], words[3], words[4])
	case "leave":
		one.client.Close()
	default:
		return "", fmt.Errorf("unknown: %s", words[0])
	}
	return "", nil
}

func (all *members) join(group, protocol, instance, topic string) (*member, error) {
	joined := &member{owned: map[string]bool{}}
	options := []kgo.Opt{
		kgo.SeedBrokers(all.servers...),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.DisableAutoCommit(),
		kgo.Balancers(kgo.RangeBalancer()),
		kgo.HeartbeatInterval(100 * time.Millisecond),
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.MetadataMaxAge(time.Second),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			joined.set(partitions, true)
		}),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			joined.revocation.Lock()
			defer joined.revocation.Unlock()
			joined.set(partitions, false)
		}),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			joined.set(partitions, false)
		}),
	}
	if protocol == "consumer" {
		options = append(options, kgo.ServerSideBalancer())
	}
	if instance != "-" {
		options = append(options, kgo.InstanceID(instance))
	}
	if strings.HasPrefix(topic, "^") {
		options = append(options, kgo.ConsumeRegex())
	}
	client, err := kgo.NewClient(options...)
	joined.client = client
	return joined, err
}

func (one *member) set(partitions map[string][]int32, owned bool) {
	one.mutex.Lock()
	defer one.mutex.Unlock()
	for topic, numbers := range partitions {
		for _, number := range numbers {
			name := fmt.Sprintf("%s-%d", topic, number)
			if owned {
				one.owned[name] = true
			} else {
				delete(one.owned, name)
			}
		}
	}
}

// read returns the value of the first record once there is one.
func (one *member) read() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for one.first == "" {
		records := one.client.PollRecords(ctx, 1).Records()
		if len(records) > 0 {
			one.first = string(records[0].Value)
		} else if ctx.Err() != nil {
			return "", ctx.Err()
		}
	}
	return one.first, nil
}

// wait returns the partitions once there are so many.
func (one *member) wait(count int) (string, error) {
	for until := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		one.mutex.Lock()
		var names []string
		for name := range one.owned {
			names = append(names, name)
		}
		one.mutex.Unlock()
		sort.Strings(names)
		if len(names) == count {
			return strings.Join(names, " "), nil
		}
		if time.Now().After(until) {
			return "", fmt.Errorf("owns %v, not %d partitions", names, count)
		}
	}
}

func (one *member) commit(topic, partition, offset string) error {
	number, err := strconv.ParseInt(partition, 10, 32)
	if err != nil {
		return err
	}
	next, err := strconv.ParseInt(offset, 10, 64)
	if err != nil {
		return err
	}
	return one.client.CommitRecords(context.Background(), &kgo.Record{
		Topic: topic, Partition: int32(number), Offset: next - 1, LeaderEpoch: -1,
	})
}
