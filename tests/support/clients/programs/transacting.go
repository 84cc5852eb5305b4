// Transactional clients of franz-go, driven by lines on standard input: see line_clients.py. The argument is the address.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// quiet is the time without a record after which copying stops.
const quiet = 3 * time.Second

// copier is a consumer and producer in one, with the source and target topics.
type copier struct {
	session *kgo.GroupTransactSession
	target  string
}

type clients struct {
	servers   []string
	producers map[string]*kgo.Client
	copiers   map[string]copier
}

func main() {
	all := clients{strings.Split(os.Args[1], ","), map[string]*kgo.Client{}, map[string]copier{}}
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

func (all *clients) perform(words []string) (string, error) {
	ctx, name := context.Background(), words[1]
	producer := all.producers[name]
	switch words[0] {
	case "producer":
		opened, err := kgo.NewClient(kgo.SeedBrokers(all.servers...), kgo.TransactionalID(words[2]))
		if err != nil {
			return "", err
		}
		all.producers[name] = opened
		// the client initializes with its first record otherwise
		return "", retried(func() error {
			_, _, err := opened.ProducerID(ctx)
			return err
		})
	case "begin":
		return "", producer.BeginTransaction()
	case "send":
		record := &kgo.Record{Topic: words[2], Value: []byte(words[3])}
		return "", producer.ProduceSync(ctx, record).FirstErr()
	case "commit":
		return "", retried(func() error { return producer.EndTransaction(ctx, kgo.TryCommit) })
	case "abort":
		return "", producer.EndTransaction(ctx, kgo.TryAbort)
	case "copier":
		session, err := kgo.NewGroupTransactSession(append(all.reading(words[4]),
			kgo.TransactionalID(words[2]), kgo.ConsumerGroup(words[3]), kgo.RequireStableFetchOffsets(),
			kgo.HeartbeatInterval(200*time.Millisecond))...)
		all.copiers[name] = copier{session, words[5]}
		return "", err
	case "copy":
		return "", all.copiers[name].copy(ctx, words[2])
	case "finish":
		session := all.copiers[name].session
		committed, err := session.End(ctx, kgo.TryCommit)
		if err != nil {
			committed, err = session.End(ctx, kgo.TryAbort)
		}
		return strconv.FormatBool(committed), err
	case "read":
		return all.read(ctx, words[1], words[2])
	}
	return "", fmt.Errorf("unknown: %s", words[0])
}

// retried repeats what franz-go leaves to its users: a coordinator that is busy (51), or has died.
func retried(call func() error) error {
	err := call()
	var network *net.OpError
	for tries := 0; tries < 50 && (errors.Is(err, kerr.ConcurrentTransactions) || errors.As(err, &network)); tries++ {
		time.Sleep(100 * time.Millisecond)
		err = call()
	}
	return err
}

func (all *clients) reading(topic string) []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(all.servers...),
		kgo.ConsumeTopics(topic),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	}
}

func (each copier) copy(ctx context.Context, count string) error {
	left, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	if err := each.session.Begin(); err != nil {
		return err
	}
	for left > 0 {
		limited, cancel := context.WithTimeout(ctx, quiet)
		records := each.session.PollRecords(limited, left).Records()
		cancel()
		if len(records) == 0 {
			return nil
		}
		for _, record := range records {
			if err := each.session.ProduceSync(ctx, &kgo.Record{Topic: each.target, Value: record.Value}).FirstErr(); err != nil {
				return err
			}
			left--
		}
	}
	return nil
}

func (all *clients) read(ctx context.Context, topic, count string) (string, error) {
	wanted, err := strconv.Atoi(count)
	if err != nil {
		return "", err
	}
	reader, err := kgo.NewClient(all.reading(topic)...)
	if err != nil {
		return "", err
	}
	defer reader.Close()
	var values []string
	for len(values) < wanted {
		for _, record := range reader.PollFetches(ctx).Records() {
			values = append(values, string(record.Value))
		}
	}
	return strings.Join(values, " "), nil
}
