// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"
)

// errSevered ends a watch in the middle.
var errSevered = errors.New("fault: watch severed")

// stream is the body of a watch whose events pass by the rules. Its two goroutines end when the body is closed,
// when the watch ends, or with the request.
type stream struct {
	*io.PipeReader // what the client reads
	rules          *Rules
	resource       string
	form           form
	from           io.ReadCloser
	to             *io.PipeWriter
	ends           chan End
	closed         chan struct{}
	close          sync.Once

	held []*holding // in the order of arrival; only run touches it
}

// holding is an event that waits for others to pass.
type holding struct {
	event  []byte
	about  Seen
	behind int // events of other objects still to pass
	until  time.Time
}

// arrival is one event, or how the watch ended.
type arrival struct {
	event []byte
	err   error
}

func newStream(ctx context.Context, rules *Rules, resource string, f form, from io.ReadCloser) *stream {
	s := &stream{rules: rules, resource: resource, form: f, from: from, ends: make(chan End, 1), closed: make(chan struct{})}
	s.PipeReader, s.to = io.Pipe()
	rules.opened(s)
	arrivals := make(chan arrival)
	go s.read(arrivals)
	go func() {
		defer rules.ended(s)
		s.to.CloseWithError(s.run(ctx, arrivals))
		s.stop()
	}()
	return s
}

// Close implements io.Closer.
func (s *stream) Close() error {
	s.stop()
	return s.PipeReader.Close()
}

func (s *stream) stop() {
	s.close.Do(func() {
		close(s.closed)
		_ = s.from.Close()
	})
}

// read takes events from the API server.
func (s *stream) read(arrivals chan<- arrival) {
	next := s.form.reader(s.from)
	for {
		event, err := next()
		select {
		case arrivals <- arrival{event, err}:
		case <-s.closed:
			return
		}
		if err != nil {
			return
		}
	}
}

// run passes events on until the watch ends, and returns how.
func (s *stream) run(ctx context.Context, arrivals <-chan arrival) error {
	for {
		frozen, changed := s.rules.frozenNow(s.resource)
		in, due := arrivals, s.due()
		if frozen {
			in, due = nil, nil
		}
		var err error
		select {
		case a := <-in:
			if a.err != nil {
				return firstOf(s.release(func(*holding) bool { return true }), a.err)
			}
			err = s.pass(ctx, a.event)
		case now := <-due:
			err = s.release(func(h *holding) bool { return !h.until.After(now) })
		case how := <-s.ends:
			return s.end(how)
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.closed:
			return io.ErrClosedPipe
		}
		if err != nil {
			return err
		}
	}
}

func (s *stream) end(how End) error {
	switch how {
	case Expired:
		return firstOf(s.write(s.form.gone()), io.EOF)
	case Severed:
		return errSevered
	default:
		return io.EOF
	}
}

// firstOf keeps io.EOF what it is, which a joined error would not.
func firstOf(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// pass does with one event what the rules say.
func (s *stream) pass(ctx context.Context, event []byte) error {
	if len(s.held) == 0 && !s.rules.inspects(s.resource) {
		return s.write(event)
	}
	about, err := s.form.read(event)
	if err != nil {
		return err
	}
	about.Resource = s.resource
	// What is held must not be passed by its own object.
	if err := s.release(func(h *holding) bool { return h.about.UID == about.UID }); err != nil {
		return err
	}
	twist := s.rules.forEvent(about)
	switch {
	case twist == nil:
	case twist.Kind == Dropped:
		return nil
	case twist.Kind == Held:
		s.held = append(s.held, &holding{event, about, twist.Behind, time.Now().Add(twist.For)})
		return nil
	case twist.Kind == Garbled:
		return s.write(s.form.garbage())
	case twist.Kind == Stalled:
		if !pause(ctx, twist.For, s.closed) {
			return io.ErrClosedPipe
		}
	case twist.Kind == Twice:
		if err := s.write(event); err != nil {
			return err
		}
	}
	if err := s.write(event); err != nil {
		return err
	}
	return s.release(func(h *holding) bool {
		h.behind--
		return h.behind <= 0
	})
}

// release writes the held events that may go.
func (s *stream) release(may func(*holding) bool) error {
	var failed error
	s.held = slices.DeleteFunc(s.held, func(h *holding) bool {
		if failed != nil || !may(h) {
			return false
		}
		failed = s.write(h.event)
		return true
	})
	return failed
}

// due is when the next held event has waited long enough, nil for never.
func (s *stream) due() <-chan time.Time {
	if len(s.held) == 0 {
		return nil
	}
	next := slices.MinFunc(s.held, func(a, b *holding) int { return a.until.Compare(b.until) })
	return time.After(time.Until(next.until))
}

func (s *stream) write(event []byte) error {
	_, err := s.to.Write(s.form.frame(event))
	return err
}
