// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/kube/call"
)

// changeTries is how often a change is sent when it met a conflict or its outcome was unknown.
const changeTries = 5

// errStopped ends a change because its sender was stopped: whether it was carried out is not known.
var errStopped = errors.New("stopped")

// sender is who sends changes: a crew.
type sender interface {
	// awaitLease waits until no other process can lead; it is false when the sender was stopped.
	awaitLease() bool
	// writing returns the context of one write.
	writing(limit time.Duration) (context.Context, context.CancelFunc)
	// calls is the context that ends all calls.
	calls() context.Context
	// firstWait is the wait before the second try.
	firstWait() time.Duration
}

// change is a change of one object of the API server, which may be sent again: before the second time the sender reads
// the object first, and does not send what is done already.
type change[T any] struct {
	what string // for messages
	// blind sends the change without having read the object; nil where that cannot be.
	blind func(ctx context.Context) error
	read  func(ctx context.Context) (T, error)
	// judge reports whether an object that was read is as wanted, or, by the error, that it never will be.
	judge func(T) (done bool, never error)
	// send sends the change of an object that was read, with its resourceVersion as the precondition.
	send func(ctx context.Context, was T) error
}

// carry sends a change until its outcome is known. It returns nil when the API server has the object as wanted.
func carry[T any](w sender, c change[T]) error {
	wait := w.firstWait()
	var last error // of the last try to send
	for try := 1; ; try++ {
		if !w.awaitLease() {
			return errStopped
		}
		err := attempt(w, c, try, last)
		switch {
		case err == nil:
			return nil
		case w.calls().Err() != nil:
			return errStopped
		case errors.As(err, new(final)) || refusal(err) != notRefused:
			return fmt.Errorf("%s: %w", c.what, err)
		}
		klog.FromContext(w.calls()).V(2).Info("Write is tried again", "write", c.what, "try", try, "err", err)
		last = err
		if !call.Sleep(w.calls(), wait) {
			return errStopped
		}
		wait = min(2*wait, time.Second)
	}
}

// final is an error that another try cannot mend.
type final struct{ error }

// Unwrap is the error itself.
func (f final) Unwrap() error { return f.error }

// attempt is one try. From the second on the object is read first, for as long as that takes; after the last try it is
// only read.
func attempt[T any](w sender, c change[T], try int, last error) error {
	if try == 1 && c.blind != nil {
		return inLease(w, c.blind)
	}
	was, err := surely(w, c.read)
	if err != nil {
		return final{err}
	}
	switch done, never := c.judge(was); {
	case never != nil:
		return final{never}
	case done:
		return nil
	case try > changeTries:
		return final{last}
	}
	return inLease(w, func(ctx context.Context) error { return c.send(ctx, was) })
}

// inLease gives a write as long as a bind has.
func inLease(w sender, do func(context.Context) error) error {
	ctx, cancel := w.writing(call.Timeout)
	defer cancel()
	return do(ctx)
}

func timed(w sender, limit time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(w.calls(), limit)
	defer cancel()
	return do(ctx)
}

// surely reads until the API server answers. The error is then its answer: there is no such object, or we may not see
// it.
func surely[T any](w sender, read func(context.Context) (T, error)) (got T, err error) {
	for wait := w.firstWait(); ; wait = min(2*wait, 5*time.Second) {
		err = timed(w, call.RereadTimeout, func(ctx context.Context) (err error) { got, err = read(ctx); return err })
		if err == nil || apierrors.IsNotFound(err) || refusal(err) != notRefused || !call.Sleep(w.calls(), wait) {
			return got, err
		}
		if wait == 5*time.Second {
			klog.FromContext(w.calls()).Info("Object to be written cannot be read", "err", err)
		}
	}
}
