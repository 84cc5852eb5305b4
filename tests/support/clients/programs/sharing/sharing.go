// Members of share groups with franz-go, driven by lines on standard input: see line_clients.py. The argument is the
// address.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const limit = 30 * time.Second

var statuses = map[string]kgo.AckStatus{
	"accept": kgo.AckAccept, "release": kgo.AckRelease, "reject": kgo.AckReject, "renew": kgo.AckRenew,
}

// member is a client, the records that it holds by their values, and the outcomes of its acknowledgements.
type member struct {
	client   *kgo.Client
	held     map[string]*kgo.Record
	mutex    sync.Mutex
	outcomes []string
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
	case "share":
		joined, err := all.join(words[2], words[4], words[5])
		all.all[words[1]] = joined
		return "", err
	case "poll":
		return one.poll(100 * time.Millisecond)
	case "take":
		return one.poll(limit)
	case "accept", "release", "reject", "renew":
		for _, value := range words[2:] {
			one.held[value].Ack(statuses[words[0]])
		}
	case "commit":
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		one.told()
		err := one.client.FlushAcks(ctx)
		return one.told(), err
	case "leave":
		one.client.Close()
	default:
		return "", fmt.Errorf("unknown: %s", words[0])
	}
	return "", nil
}

func (all *members) join(group, records, topic string) (*member, error) {
	joined := &member{held: map[string]*kgo.Record{}}
	options := []kgo.Opt{
		kgo.SeedBrokers(all.servers...),
		kgo.ShareGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.MetadataMaxAge(time.Second),
		kgo.ShareAckCallback(func(_ *kgo.Client, results kgo.ShareAckResults) { joined.note(results) }),
	}
	if records != "-" {
		count, err := strconv.ParseInt(records, 10, 32)
		if err != nil {
			return nil, err
		}
		options = append(options, kgo.ShareMaxRecords(int32(count)), kgo.ShareMaxRecordsStrict())
	}
	client, err := kgo.NewClient(options...)
	joined.client = client
	return joined, err
}

func (one *member) note(results kgo.ShareAckResults) {
	one.mutex.Lock()
	defer one.mutex.Unlock()
	for _, result := range results {
		outcome := "NONE"
		var refused *kerr.Error
		if errors.As(result.Err, &refused) {
			outcome = refused.Message
		} else if result.Err != nil {
			outcome = result.Err.Error()
		}
		one.outcomes = append(one.outcomes, outcome)
	}
}

// told returns the outcomes since it was last called.
func (one *member) told() string {
	one.mutex.Lock()
	defer one.mutex.Unlock()
	outcomes := strings.Join(one.outcomes, " ")
	one.outcomes = nil
	return outcomes
}

// poll returns the values of records with their delivery counts, none if there are none in time.
func (one *member) poll(wait time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	var polled []string
	for len(polled) == 0 && ctx.Err() == nil {
		fetches := one.client.PollFetches(ctx)
		for _, failed := range fetches.Errors() {
			if !errors.Is(failed.Err, context.DeadlineExceeded) {
				return "", failed.Err
			}
		}
		for _, record := range fetches.Records() {
			value := string(record.Value)
			one.held[value] = record
			polled = append(polled, fmt.Sprintf("%sx%d", value, record.DeliveryCount()))
		}
	}
	return strings.Join(polled, " "), nil
}
