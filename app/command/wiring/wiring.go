// SPDX-License-Identifier: Apache-2.0

// Package wiring owns the connection of the scheduler that this command runs with its view: the engine's effects fill
// the rings, and questions go to the engine.
package wiring

import (
	"context"
	"net/http"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/question"
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
