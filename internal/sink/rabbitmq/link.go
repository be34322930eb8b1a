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
	maxWaste     = 1000 // channels that wait for being closed
	maxAtOnce    = 1000 // messages that a channel waits for at a time
)

// link is a connection, with channels that no call uses at the moment.
type link struct {
	conn    *amqp.Connection
	socket  net.Conn
	idle    chan *channel
	waste   chan *channel          // to be closed
	blocked atomic.Pointer[string] // why the broker has blocked publishing; nil: it has not
	chores  sync.WaitGroup         // the two goroutines that end with the connection
}

// channel is a channel in confirm mode.
type channel struct {
	*amqp.Channel
	returns chan amqp.Return // messages that no queue took; they come before their confirmations. Has room for all that a call publishes, so that the client never waits
	closed  chan *amqp.Error // gets why the channel was closed by another than us
	why     *amqp.Error      // what closed gave
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
	l := &link{conn: conn, socket: socket, idle: make(chan *channel, idleChannels), waste: make(chan *channel, maxWaste)}
	blocks := conn.NotifyBlocked(make(chan amqp.Blocking, 1))
	ended := make(chan struct{})
	l.chores.Go(func() {
		defer close(ended)
		l.watch(blocks)
	})
	l.chores.Go(func() { l.closeWaste(ended) })
	return l, nil
}

// watch notes when the broker blocks publishing, until the connection ends.
func (l *link) watch(blocks <-chan amqp.Blocking) {
	for b := range blocks {
		if b.Active {
			l.blocked.Store(&b.Reason)
		} else {
			l.blocked.Store(nil)
		}
	}
}

// closeWaste closes channels that are of no more use, for which the client waits for the broker.
func (l *link) closeWaste(ended <-chan struct{}) {
	for {
		select {
		case ch := <-l.waste:
			_ = ch.Close()
		case <-ended:
			return
		}
	}
}

func connectionError(host string, err error) error {
	return &target.Error{Code: sink.CodeConnection, Message: fmt.Sprintf("%s: %v", host, err), Err: err}
}

// shut ends the connection.
func (l *link) shut() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if deadline, ok := ctx.Deadline(); ok {
		_ = l.conn.CloseDeadline(deadline)
	}
	_ = l.socket.Close()
	l.chores.Wait()
}

// take gives a channel that is nobody else's until it is put back.
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

// put gives a channel back. One that still waits for confirmations is of no more use.
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
	case l.waste <- ch:
	default: // a broker that does not even close channels: the connection is not worth keeping
		_ = l.socket.Close()
	}
}

// guard closes the socket when ctx is done and the step that it guards goes on for a while all the same: the client's calls and writes take no context, and one of them hangs while the broker
// reads nothing. What else is under way over the connection is tried again. The function that it returns says that the step is over.
func (l *link) guard(ctx context.Context) (over func()) {
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		patience, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		select {
		case <-ended:
		case <-patience.Done():
			_ = l.socket.Close()
		}
	})
	return func() {
		stop()
		close(ended)
	}
}
