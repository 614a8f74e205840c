// SPDX-License-Identifier: Apache-2.0

// Package wiring owns the connection of the scheduler that this command runs with its view: the engine's effects fill
// the rings, and questions go to the engine.
package wiring

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/app/command/incidents"
	"github.com/kumiki-scheduler/kumiki/app/command/tape"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/question"
	"github.com/kumiki-scheduler/kumiki/kube"
	"github.com/kumiki-scheduler/kumiki/kube/incident"
	"github.com/kumiki-scheduler/kumiki/kube/metrics"
	"github.com/kumiki-scheduler/kumiki/kube/serve"
	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/timing"
	"github.com/kumiki-scheduler/kumiki/view"
)

// The server hands requests of users who may see single namespaces to the view.
var _ serve.Narrow = (*view.API)(nil)

// View makes a scheduler serve /kumiki/v1/.
func View(o *app.Options) {
	var scheduler *app.Scheduler // set before the first request
	v := view.New(view.Options{Asker: view.AskFunc(func(ctx context.Context, f func(view.Explainer)) error {
		return scheduler.Ask(ctx, func(e *engine.Engine) { f(question.New(e.View())) })
	}), Paused: func() *record.Pause { return scheduler.Paused() },
		Timing: func(q timing.Query) record.Timing { return scheduler.Timing(q) }})
	o.Observers = append(o.Observers, func(_ engine.Event, effects []engine.Effect) { feed(v, effects) })
	o.Handlers = func(s *app.Scheduler) map[string]http.Handler {
		scheduler = s
		return map[string]http.Handler{view.Prefix: v.Handler()}
	}
}

func feed(v *view.View, effects []engine.Effect) {
	for _, effect := range effects {
		switch e := effect.(type) {
		case engine.Moved:
			v.Moved(e.Move)
		case engine.Decided:
			v.Decided(e.Decision)
		}
	}
}

// Incidents makes a scheduler have a flight recorder, whose bundles are served at incidents.Path if the configuration
// enables profiling. It must be called after View. The caller must call ended with the error with which the scheduler
// ended; then the last bundles are written, and goroutines end.
func Incidents(ctx context.Context, o *app.Options, store incidents.Options) (ended func(error)) {
	store.Config, store.Timeout = o.Config, o.UnschedulableTimeout
	store.Count = func(c incident.Cause) { metrics.Process().Incidents.WithLabelValues(string(c)).Inc() }
	store.Metrics = scrape
	limits := incident.DefaultLimits
	limits.NoBinds += o.Config.Kumiki.SessionPeriod // within it, units wait for the next session
	limits.Lease = o.Config.LeaderElection.RenewDeadline / 2
	var s *incidents.Store                                      // set before the server begins
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // a scheduler that hands over may have incidents
	var parts sync.WaitGroup
	o.Flight = func(e *engine.Engine, scheduler *app.Scheduler) kube.Flight {
		flight := incident.NewFlight(e.State, limits, func() incident.Server { return server(scheduler) })
		store.Hosted = tape.HostedBy(e)
		s = incidents.New(flight, store)
		parts.Go(func() { flight.Run(ctx) })
		parts.Go(func() { s.Run(ctx) })
		return flight
	}
	before := o.Handlers
	o.Handlers = func(scheduler *app.Scheduler) map[string]http.Handler {
		handlers := map[string]http.Handler{}
		if before != nil {
			handlers = before(scheduler)
		}
		if o.Config.Profiling {
			handlers[incidents.Path], handlers[incidents.Path+"/"] = s.Handler(), s.Handler()
		}
		return handlers
	}
	return func(err error) {
		if s != nil && errors.Is(err, kube.ErrLeaseLost) {
			s.LeaseLost()
		}
		stop()
		parts.Wait()
	}
}

// server returns how the API server answers a scheduler.
func server(s *app.Scheduler) incident.Server {
	u := s.Unanswered()
	out := incident.Server{Since: u.Since, Requests: u.Failed + u.Pending, Oldest: u.Oldest}
	out.Leads, out.Renewed = s.Leads()
	return out
}

// scrape writes what /metrics answers.
func scrape(w io.Writer) error {
	request, err := http.NewRequest(http.MethodGet, "/metrics", nil)
	if err != nil {
		return err
	}
	a := answer{Writer: w, header: http.Header{}, status: http.StatusOK}
	legacyregistry.Handler().ServeHTTP(&a, request)
	if a.status != http.StatusOK {
		return fmt.Errorf("/metrics answered %d", a.status)
	}
	return nil
}

// answer writes the body of an answer.
type answer struct {
	io.Writer
	header http.Header
	status int
}

// Header and WriteHeader make it a http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader notes the status.
func (a *answer) WriteHeader(status int) { a.status = status }

// Shadow makes a shadow serve /kumiki/v1/, with its report at /kumiki/v1/shadow.
func Shadow(o *app.Options, so *app.ShadowOptions) {
	var s *app.Shadow // set before the first request
	v := view.New(view.Options{Asker: view.AskFunc(func(ctx context.Context, f func(view.Explainer)) error {
		return s.Ask(ctx, func(e *engine.Engine) { f(question.New(e.View())) })
	})})
	o.Observers = append(o.Observers, func(_ engine.Event, effects []engine.Effect) { feed(v, effects) })
	so.Handlers = func(made *app.Shadow) map[string]http.Handler {
		s = made
		return map[string]http.Handler{
			view.Prefix:            v.Handler(),
			view.Prefix + "shadow": view.Report(func(ctx context.Context) (any, error) { return s.Report(ctx) }),
		}
	}
}
