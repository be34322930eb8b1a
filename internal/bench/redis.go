package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"
)

// redisServer is a running Redis. Its keys expire, and it announces them by keyspace notifications.
type redisServer struct {
	address  string
	prefix   string // of the run's keys
	about    Endpoint
	conn     *redisConn
	notified string // its setting of notifications before the run
}

const (
	redisNotify   = "notify-keyspace-events"
	redisChannel  = "__keyevent@0__:expired"
	redisBatch    = 1000
	redisKeyMark  = "item-"
	redisCallMark = "call-"
)

// openRedis connects, and switches notifications about expired keys on until close.
func openRedis(ctx context.Context, address, prefix string, allowRemote bool) (*redisServer, error) {
	_, host, _, err := serverAddress(ctx, address, "redis", "6379", allowRemote)
	if err != nil {
		return nil, err
	}
	s := &redisServer{address: host, prefix: prefix, about: Endpoint{Name: "Redis", URL: "redis://" + host, Notes: []string{"keyspace notifications"}}}
	if s.conn, err = dialRedis(ctx, s.address); err == nil {
		err = s.prepare()
	}
	if err != nil {
		s.conn.close()
		return nil, fmt.Errorf("%s does not answer as Redis does: %w", s.about.URL, err)
	}
	return s, nil
}

// prepare notes the server's version and settings, and switches the notifications on.
func (s *redisServer) prepare() error {
	info, err := s.conn.do("INFO", "server")
	if err != nil {
		return err
	}
	_, version, _ := strings.Cut(info, "redis_version:")
	s.about.Version, _, _ = strings.Cut(version, "\r\n")
	log, err := s.conn.do("CONFIG", "GET", "appendonly")
	if err != nil {
		return err
	}
	if log == "no" {
		s.about.Durability = "memory"
	}
	if s.notified, err = s.conn.do("CONFIG", "GET", redisNotify); err != nil {
		return err
	}
	_, err = s.conn.do("CONFIG", "SET", redisNotify, "Ex")
	return err
}

func (s *redisServer) describe() Endpoint { return s.about }

func (s *redisServer) entries() (name, difference string) {
	return "keys", "a notification has the key, and no images"
}

// arm stores a key for each item, with a value of an item's size.
func (s *redisServer) arm(ctx context.Context, p *plan, removed func(item int, at time.Time)) (stop func(), err error) {
	subscriber, err := dialRedis(ctx, s.address)
	if err != nil {
		return nil, err
	}
	if _, err := subscriber.do("SUBSCRIBE", redisChannel); err != nil {
		subscriber.close()
		return nil, err
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			key, err := subscriber.answer()
			if err != nil {
				return // after stop; or the report has the missing items
			}
			if number, ours := strings.CutPrefix(key, s.prefix+redisKeyMark); ours {
				if item, ok := leadingNumber([]byte(number)); ok {
					removed(int(item), time.Now())
				}
			}
		}
	})
	stop = func() {
		subscriber.close()
		reading.Wait()
	}
	err = s.conn.all(p.items, func(item int) []string {
		return []string{"SET", s.key(redisKeyMark, item), textOf(uint64(item), itemBytes), "PXAT", strconv.FormatInt(p.deadline(item).UnixMilli(), 10)}
	})
	if err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

func (s *redisServer) key(mark string, item int) string {
	return string(appendDigits([]byte(s.prefix+mark), uint64(item)))
}

// startForeground makes GET and SET calls to keys without deadlines.
func (s *redisServer) startForeground(ctx context.Context, perS int) (*foreground, error) {
	err := s.conn.all(foregroundItems, func(item int) []string {
		return []string{"SET", s.key(redisCallMark, item), textOf(uint64(item), itemBytes)}
	})
	if err != nil {
		return nil, err
	}
	var all []*operation
	for _, name := range []string{"GET", "SET"} {
		o := &operation{name: name, perS: perS}
		all = append(all, o)
		for i := range foregroundConnections {
			c, err := dialRedis(ctx, s.address)
			if err != nil {
				closeConnections(all)
				return nil, err
			}
			o.connections = append(o.connections, &redisCaller{redisConn: c, server: s, operation: name, random: newRandom(i)})
		}
	}
	return startCalls(ctx, all), nil
}

// close restores the setting of notifications, and removes the keys without deadlines.
func (s *redisServer) close() error {
	defer s.conn.close()
	_, err := s.conn.do("CONFIG", "SET", redisNotify, s.notified)
	return errors.Join(err, s.conn.all(foregroundItems, func(item int) []string { return []string{"DEL", s.key(redisCallMark, item)} }))
}

// redisCaller makes calls of one kind.
type redisCaller struct {
	*redisConn
	server    *redisServer
	operation string
	random    *rand.PCG
}

func (c *redisCaller) call() error {
	item := c.random.Uint64() % foregroundItems
	words := []string{c.operation, c.server.key(redisCallMark, int(item))}
	if c.operation == "SET" {
		words = append(words, textOf(item, itemBytes))
	}
	if _, err := c.do(words...); err != nil {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	return nil
}

// redisConn is a minimal connection in RESP, Redis's protocol.
type redisConn struct{ *conn }

func dialRedis(ctx context.Context, address string) (*redisConn, error) {
	c, err := dial(ctx, address)
	if err != nil {
		return nil, err
	}
	c.in = bufio.NewReader(c.net)
	return &redisConn{c}, nil
}

// close is safe on a nil redisConn.
func (c *redisConn) close() {
	if c != nil {
		c.conn.close()
	}
}

// do sends a command and returns its answer.
func (c *redisConn) do(words ...string) (string, error) {
	if _, err := c.net.Write(appendCommand(nil, words)); err != nil {
		return "", err
	}
	return c.answer()
}

// all sends the commands for items 0 to n-1, many at a time, and checks their answers.
func (c *redisConn) all(n int, command func(item int) []string) error {
	var buf []byte
	for from := 0; from < n; from += redisBatch {
		to := min(from+redisBatch, n)
		buf = buf[:0]
		for item := from; item < to; item++ {
			buf = appendCommand(buf, command(item))
		}
		if _, err := c.net.Write(buf); err != nil {
			return err
		}
		for range to - from {
			if _, err := c.answer(); err != nil {
				return err
			}
		}
	}
	return nil
}

func appendCommand(dst []byte, words []string) []byte {
	dst = fmt.Appendf(dst, "*%d\r\n", len(words))
	for _, word := range words {
		dst = fmt.Appendf(dst, "$%d\r\n%s\r\n", len(word), word)
	}
	return dst
}

var errRedisForm = errors.New("the answer is not RESP")

// answer reads a whole answer: a text, or the last text of an array.
func (c *redisConn) answer() (last string, err error) {
	for left := 1; left > 0; left-- {
		line, err := c.in.ReadString('\n')
		if err != nil {
			return "", err
		}
		kind, text := line[0], strings.TrimRight(line[1:], "\r\n")
		switch kind {
		case '+', ':':
			last = text
			continue
		case '-':
			return "", errors.New(text)
		}
		n, err := strconv.Atoi(text)
		switch {
		case err != nil || n > answerMax || kind != '$' && kind != '*':
			return "", errRedisForm
		case kind == '*':
			left += max(n, 0)
		case n < 0: // nothing
			last = ""
		default:
			bulk := make([]byte, n+len("\r\n"))
			if _, err := io.ReadFull(c.in, bulk); err != nil {
				return "", err
			}
			last = string(bulk[:n])
		}
	}
	return last, nil
}
