// SPDX-License-Identifier: Apache-2.0

package profilecheck

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kumiki-scheduler/kumiki/apm/bottleneck"
)

// Baseline has the pods per second of a scheduler without an injected cause, and those of the no-op binder, which makes
// the same calls without decisions. Nothing is recorded meanwhile.
type Baseline struct {
	Rate float64 `json:"podsPerSecond"`
	Null float64 `json:"nullPodsPerSecond"`
}

// leastOfNull is the share of the rate of the no-op binder from which on both meet the same limit.
const leastOfNull = 0.8

// beyond are the causes outside of a scheduler's decisions: the no-op binder meets them too. It sends as many binds at
// once as kumiki.
var beyond = []bottleneck.Cause{bottleneck.APIServerCPU, bottleneck.Etcd, bottleneck.APF, bottleneck.APILatency,
	bottleneck.CPUStarvation, bottleneck.InFlightLimit}

// meets reports whether a cause is a limit that the no-op binder meets too: it is outside of the decisions, and the
// no-op binder is not much faster.
func (b *Baseline) meets(c bottleneck.Cause) bool {
	return slices.Contains(beyond, c) && b.Rate >= leastOfNull*b.Null
}

// String returns both rates.
func (b *Baseline) String() string { return fmt.Sprintf("%.0f/s, null %.0f/s", b.Rate, b.Null) }

// backlogged is how many pods wait when the scheduler starts.
const backlogged = 1800

// nothing injects nothing: the scheduler has a backlog and no cause.
func nothing(ctx context.Context, g *ground, _ *rand.Rand) (string, error) {
	return fmt.Sprintf("%d pods", backlogged), g.backlog(ctx, backlogged, nil)
}

// baseline measures the rate of the scheduler and that of the no-op binder.
func (s *site) baseline(ctx context.Context, t turn) (*Baseline, error) {
	b := &Baseline{}
	for _, one := range []struct {
		name string
		rate *float64
	}{{"-rate", &b.Rate}, {"-null", &b.Null}} {
		g := s.ground(t, false)
		g.namespace += one.name
		g.noop = one.rate == &b.Null
		g.inject(ctx, t, func() (err error) {
			*one.rate, err = g.rate(ctx)
			return err
		})
		if g.err != nil {
			return nil, fmt.Errorf("measuring the rate without a recording: %w", g.err)
		}
	}
	return b, nil
}

// patience is how long most of the backlog may take.
const patience = time.Minute

// rate starts the scheduler and returns how many pods it binds per second.
func (g *ground) rate(ctx context.Context) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	w, err := g.client.CoreV1().Pods(g.namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName="})
	if err != nil {
		return 0, fmt.Errorf("watching the pods without a node: %w", err)
	}
	defer w.Stop()
	_, stop, err := g.launch(ctx, filepath.Join(g.o.Dir, g.namespace))
	if err != nil {
		return 0, err
	}
	defer stop()
	return rateOf(w.ResultChan(), backlogged, time.Now)
}

// rateOf returns the pods per second that leave a watch of a backlog, from its second tenth to its ninth: the begin has
// the start of the scheduler in it, and the end binds that are late.
func rateOf(events <-chan watch.Event, backlog int, now func() time.Time) (float64, error) {
	from, to := backlog/10, backlog*9/10
	left, began := 0, time.Time{}
	for event := range events {
		if event.Type != watch.Deleted {
			continue
		}
		switch left++; left {
		case from:
			began = now()
		case to:
			return float64(to-from) / now().Sub(began).Seconds(), nil
		}
	}
	return 0, fmt.Errorf("%d of %d pods were bound when the watch ended", left, backlog)
}
