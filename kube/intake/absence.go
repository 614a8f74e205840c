// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/kube/call"
)

func listWatch[L runtime.Object](
	list func(context.Context, metav1.ListOptions) (L, error),
	watches func(context.Context, metav1.ListOptions) (watch.Interface, error),
) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return list(ctx, o)
		},
		WatchFuncWithContext: watches,
	}
}

const (
	// forbiddenGrace is how long a kind may be forbidden before the scheduler goes on without it. An API server that
	// has just been started forbids what it allows a moment later, when it has read the roles.
	forbiddenGrace = 5 * time.Second
	// firstAbsence and longestAbsence bound the wait before a kind that is not served, or not to us, is asked for
	// again.
	firstAbsence, longestAbsence = time.Second, time.Minute
	// failingGrace is how long an API server may answer that it cannot list a kind, and answerGrace how long it may
	// take for an answer, before the scheduler goes on without the kind, where it can. One that has just been started
	// may not be ready.
	failingGrace = 10 * time.Second
	answerGrace  = 30 * time.Second
)

// patient wraps the source of a kind without which the scheduler can go on: one that this API server does not serve, or
// does not let us read. Such an answer is kept from the reflector, which would tell of it again and again, and the
// question is asked again, less and less often. absent is called, once for each call of patient, when the kind must
// count as listed. ctx ends the asking: a reflector lists without a context of its own.
func patient(ctx context.Context, lw *cache.ListWatch, a absence, absent func()) *cache.ListWatch {
	list, watches := lw.ListWithContextFunc, lw.WatchFuncWithContext
	p := &patience{ctx: ctx, absence: a, absent: absent}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (got runtime.Object, err error) {
			p.ask(func() error { got, err = list(ctx, o); return err })
			return got, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (got watch.Interface, err error) {
			p.ask(func() error { got, err = watches(ctx, o); return err })
			return got, err
		},
	}
}

// absence tells of a kind that cannot be read.
type absence struct {
	kind, so string // its name, and what it turns off
	// expected: the absence needs no log line at the default verbosity.
	expected bool
	// recent: the same holds while the API server does not serve the kind, because a supported release does not.
	recent bool
	// fails is called, from any goroutine, once the API server has answered with errors of its own for failingGrace, or
	// not at all for answerGrace: it serves the kind and cannot list it. A lost connection is no such answer. nil: such
	// answers are left to the reflector.
	fails func()
}

// patience belongs to the goroutine of one reflector: its list and its watch follow each other.
type patience struct {
	ctx context.Context
	absence
	absent func()
	logged bool
	quiet  bool // it was logged above the default verbosity
	// failingSince is when the question was asked that began a series of errors; zero if the newest answer was none.
	// reported is set once fails was called for the series.
	failingSince time.Time
	reported     bool
}

// ask asks until the kind is there, or the answer is of another sort, or ctx ends.
func (p *patience) ask(do func() error) {
	wait := firstAbsence
	for waited := time.Duration(0); ; {
		began := time.Now()
		overdue := p.watchForAnswer()
		err := do()
		overdue()
		forbidden := apierrors.IsForbidden(err)
		if !forbidden && !apierrors.IsNotFound(err) {
			p.noteAnswer(began, err)
			if p.logged && err == nil {
				klog.FromContext(p.ctx).Info("Objects of a kind can be read now", "kind", p.kind)
				p.logged, p.quiet = false, false
			}
			return
		}
		quiet := p.expected || p.recent && !forbidden
		if (!p.logged || p.quiet && !quiet) && (!forbidden || waited >= forbiddenGrace) {
			level := 0
			if quiet {
				level = 2
			}
			klog.FromContext(p.ctx).V(level).Info("Objects of a kind cannot be read; going on as if there were none",
				"kind", p.kind,
				"so", p.so, "err", err)
			if !p.logged {
				p.absent()
			}
			p.logged, p.quiet = true, quiet
		}
		if !call.Sleep(p.ctx, wait) {
			return
		}
		waited += wait
		wait = min(2*wait, longestAbsence)
	}
}

// watchForAnswer watches for an answer that does not come: the client asks again by itself when the API server is busy,
// for minutes. The caller calls done when it came.
func (p *patience) watchForAnswer() (done func()) {
	if p.fails == nil || p.reported {
		return func() {}
	}
	late := time.AfterFunc(answerGrace, func() {
		klog.FromContext(p.ctx).Error(nil, "The API server does not answer to the list of a kind", "kind", p.kind)
		p.fails()
	})
	return func() {
		if !late.Stop() {
			p.reported = true
		}
	}
}

// noteAnswer follows how long the API server has answered with errors. began is when the question was asked.
func (p *patience) noteAnswer(began time.Time, err error) {
	var status apierrors.APIStatus
	switch {
	case p.fails == nil:
	case err == nil || !errors.As(err, &status):
		p.failingSince, p.reported = time.Time{}, false
	default:
		if p.failingSince.IsZero() {
			p.failingSince = began
		}
		if !p.reported && time.Since(p.failingSince) >= failingGrace {
			p.reported = true
			klog.FromContext(p.ctx).Error(err, "Objects of a kind cannot be listed", "kind", p.kind)
			p.fails()
		}
	}
}
