package rabbitmq

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/mayflydb/mayfly/internal/sink"
	"github.com/mayflydb/mayfly/target"
)

const (
	heartbeat    = 10 * time.Second
	closeTimeout = 5 * time.Second
	idleChannels = 64   // kept open for later calls
	maxUseless   = 1000 // channels that wait to be closed
	maxAtOnce    = 1000 // unconfirmed messages of a channel
)

// link is a connection with its idle channels.
type link struct {
	conn    *amqp.Connection
	socket  net.Conn
	idle    chan *channel
	useless chan *channel          // to be closed
	blocked atomic.Pointer[string] // the broker's reason for blocking publishing; nil: not blocked
	chores  sync.WaitGroup         // the two goroutines that end with the connection
}

// channel is a channel in confirm mode.
type channel struct {
	*amqp.Channel
	// messages without a queue; they come before their confirmations. Has room for all messages of
	// a call, so that the client never waits
	returns chan amqp.Return
	closed  chan *amqp.Error // receives the reason if the broker closes the channel
	why     *amqp.Error      // the reason received from closed
}

// connect opens a connection.
func connect(ctx context.Context, address sink.Address, user, password string, secure *tls.Config) (*link, error) {
	socket, err := (&net.Dialer{}).DialContext(ctx, "tcp", address.Host)
	if err != nil {
		return nil, connectionError(address.Host, err)
	}
	defer context.AfterFunc(ctx, func() { _ = socket.Close() })() // ends a handshake that hangs
	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName("mayfly")
	conn, err := amqp.DialConfig(address.Scheme+"://"+address.Host, amqp.Config{
		SASL: []amqp.Authentication{&amqp.PlainAuth{Username: user, Password: password}}, Vhost: address.Path, Heartbeat: heartbeat, Locale: "en_US",
		TLSClientConfig: secure, Properties: properties,
		Dial: func(string, string) (net.Conn, error) { return socket, nil },
	})
	if err != nil {
		_ = socket.Close()
		return nil, connectionError(address.Host, err)
	}
	l := &link{conn: conn, socket: socket, idle: make(chan *channel, idleChannels), useless: make(chan *channel, maxUseless)}
	blocks := conn.NotifyBlocked(make(chan amqp.Blocking, 1))
	closed := make(chan struct{})
	l.chores.Go(func() {
		defer close(closed)
		l.watch(blocks)
	})
	l.chores.Go(func() { l.closeUseless(closed) })
	return l, nil
}

// watch records when the broker blocks publishing, until the connection ends.
func (l *link) watch(blocks <-chan amqp.Blocking) {
	for b := range blocks {
		if b.Active {
			l.blocked.Store(&b.Reason)
		} else {
			l.blocked.Store(nil)
		}
	}
}

// closeUseless closes useless channels until the connection ends. Deliveries leave this to it,
// since closing a channel waits for the broker's answer.
func (l *link) closeUseless(closed <-chan struct{}) {
	for {
		select {
		case ch := <-l.useless:
			_ = ch.Close()
		case <-closed:
			return
		}
	}
}

func connectionError(host string, err error) error {
	return &target.Error{Code: sink.CodeConnection, Message: fmt.Sprintf("%s: %v", host, err), Err: err}
}

// shut closes the connection.
func (l *link) shut() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if deadline, ok := ctx.Deadline(); ok {
		_ = l.conn.CloseDeadline(deadline)
	}
	_ = l.socket.Close()
	l.chores.Wait()
}

// take returns a channel for exclusive use until put.
func (l *link) take() (*channel, error) {
	for {
		select {
		case ch := <-l.idle:
			if !ch.IsClosed() {
				return ch, nil
			}
		default:
			return l.open()
		}
	}
}

func (l *link) open() (*channel, error) {
	opened, err := l.conn.Channel()
	if err != nil {
		return nil, err
	}
	ch := &channel{Channel: opened, returns: opened.NotifyReturn(make(chan amqp.Return, maxAtOnce)), closed: opened.NotifyClose(make(chan *amqp.Error, 1))}
	if err := ch.Confirm(false); err != nil {
		return nil, err
	}
	return ch, nil
}

// put takes a channel back. It goes to the pool if it is settled, which means that it waits for no
// confirmation, and if the pool has room. Otherwise closeUseless closes it.
func (l *link) put(ch *channel, settled bool) {
	if ch.IsClosed() {
		return
	}
	if settled {
		select {
		case l.idle <- ch:
			return
		default:
		}
	}
	select {
	case l.useless <- ch:
	default: // the broker does not even close channels, so the connection is useless
		_ = l.socket.Close()
	}
}

// guard closes the socket if a step lasts for a second after ctx is done. The client's calls and
// writes take no context, and hang while the broker reads nothing. Other deliveries over the
// connection are retried. Call release at the end of the step.
func (l *link) guard(ctx context.Context) (release func()) {
	finished := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		patience, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		select {
		case <-finished:
		case <-patience.Done():
			_ = l.socket.Close()
		}
	})
	return func() {
		stop()
		close(finished)
	}
}
