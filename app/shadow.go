// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube"
	"github.com/kumiki-scheduler/kumiki/kube/intake"
	"github.com/kumiki-scheduler/kumiki/kube/metrics"
	"github.com/kumiki-scheduler/kumiki/kube/serve"
	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/shadow"
)

// reportEvery is how often a shadow writes its report to a file.
const reportEvery = 30 * time.Second

// ShadowOptions are which scheduler to follow and where to report.
type ShadowOptions struct {
	// Scheduler is the scheduler name of the pods whose binds are judged.
	Scheduler string
	// ReportFile is rewritten every 30 seconds and at the end; empty for no file.
	ReportFile string
	// For ends the shadow after a time; 0 means that it runs until its context ends.
	For time.Duration
	// Handlers makes further handlers by path, as in Options.
	Handlers func(*Shadow) map[string]http.Handler
}

// ShadowConfig returns a configuration for following a scheduler: the profile of that name, or else the first profile
// under that name, and no other; without extenders and leader election. profile is the original name of the profile.
func ShadowConfig(c config.Resolved, scheduler string) (out config.Resolved, profile string) {
	picked := c.Profiles[0]
	for _, p := range c.Profiles {
		if p.SchedulerName == scheduler {
			picked = p
		}
	}
	profile, picked.SchedulerName = picked.SchedulerName, scheduler
	c.Profiles, c.Extenders = []config.Profile{picked}, nil
	c.LeaderElection.Enabled = false
	return c, profile
}

// Shadow follows a scheduler without deciding anything. It needs rights to list and watch, and cannot write: its
// connection rejects writes.
type Shadow struct {
	judge    *shadow.Shadow
	follower kube.Follower
	clients  *kube.Clients
	server   *serve.Server // nil when serving is off
	opts     Options
	shadow   ShadowOptions
}

// NewShadow assembles a shadow. o.Config is the configuration as it was read; ShadowConfig selects the parts that
// count.
func NewShadow(ctx context.Context, o Options, so ShadowOptions) (*Shadow, error) {
	if len(o.Config.Extenders) > 0 {
		klog.FromContext(ctx).Info("Extenders are not asked in the shadow")
	}
	var profile string
	o.Config, profile = ShadowConfig(o.Config, so.Scheduler)
	common := &Scheduler{opts: o} // the parts that do not decide
	cfg, err := common.rest()
	if err != nil {
		return nil, err
	}
	engineConfig, err := o.Plugins.EngineConfig(o.Config)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	s := &Shadow{opts: o, shadow: so}
	s.judge = shadow.New(shadow.Config{Engine: engine.New(engineConfig), Scheduler: so.Scheduler, Profile: profile,
		Clock: func() time.Duration { return time.Since(began) }})
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return readOnly{next} })
	if s.clients, err = kube.NewClients(cfg); err != nil {
		return nil, err
	}
	counts := o.Metrics
	if counts == nil {
		counts = metrics.Process()
	}
	inbox := newInbox(ctx, o.Config, o.Plugins.Kinds(o.Config, engineConfig), o.Plugins.Hosts(o.Config))
	informers := intake.NewInformers(s.clients.Watches, inbox)
	informers.Dynamic = s.clients.Dynamic
	s.follower = kube.Follower{
		Informers: informers,
		Loop: kube.NewLoop(kube.LoopConfig{Engine: s.judge, Inbox: inbox, Executor: noExecutor{}, Metrics: counts,
			Observers: o.Observers, Foreign: callsForeign(engineConfig.Profiles)}),
	}
	if s.server, err = common.serve(); err != nil {
		return nil, err
	}
	return s, nil
}

// readOnly rejects requests that could write.
type readOnly struct{ next http.RoundTripper }

// RoundTrip passes reads on.
func (r readOnly) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		return nil, fmt.Errorf("a shadow does not write: refused %s %s", req.Method, req.URL.Path)
	}
	return r.next.RoundTrip(req)
}

// noExecutor is the EffectExecutor of an engine that never decides.
type noExecutor struct{}

func (noExecutor) Bind(b engine.Bind)       { panic(fmt.Sprintf("a shadow was to bind: %+v", b)) }
func (noExecutor) Recall(r engine.Recall)   { panic(fmt.Sprintf("a shadow was to recall: %+v", r)) }
func (noExecutor) Prepare(p engine.Prepare) { panic(fmt.Sprintf("a shadow was to write: %+v", p)) }
func (noExecutor) Release(r engine.Release) { panic(fmt.Sprintf("a shadow was to write: %+v", r)) }
func (noExecutor) Evict(e engine.Evict)     { panic(fmt.Sprintf("a shadow was to evict: %+v", e)) }
func (noExecutor) SetGangStatus(s engine.GangStatus) {
	panic(fmt.Sprintf("a shadow was to write: %+v", s))
}
func (noExecutor) SetCondition(c engine.Condition) {
	panic(fmt.Sprintf("a shadow was to write: %+v", c))
}
func (noExecutor) Nominate(n engine.Nominate) { panic(fmt.Sprintf("a shadow was to write: %+v", n)) }
func (noExecutor) WriteEvent(e engine.WriteEvent) {
	panic(fmt.Sprintf("a shadow was to write: %+v", e))
}

// Ask runs f on the goroutine that owns the engine, between two batches, and returns when f has run. f must not keep
// the engine or what it got from it.
func (s *Shadow) Ask(ctx context.Context, f func(*engine.Engine)) error {
	return s.follower.Loop.Ask(ctx, func() { f(s.judge.Engine) })
}

// Report returns what has been observed so far.
func (s *Shadow) Report(ctx context.Context) (r record.ShadowReport, err error) {
	err = s.follower.Loop.Ask(ctx, func() { r = s.judge.Report() })
	return r, err
}

// Endpoint returns where the shadow serves; its address is empty if serving is off.
func (s *Shadow) Endpoint() serve.Endpoint {
	if s.server == nil {
		return serve.Endpoint{}
	}
	return s.server.Endpoint()
}

// Synced returns a channel that is closed when the shadow knows the pods and nodes of the cluster.
func (s *Shadow) Synced() <-chan struct{} { return s.follower.Loop.Synced() }

// ErrNotSynced means that a shadow ended before it had a report.
var ErrNotSynced = errors.New("the cluster could not be listed in time; the log says why")

// Run follows the scheduler until ctx ends or the time is over, and returns the last report, with an error also if it
// could not be written to its file. It runs once.
func (s *Shadow) Run(ctx context.Context) (record.ShadowReport, error) {
	defer s.clients.Close()
	if s.shadow.ReportFile != "" {
		// A file that cannot be written is reported now rather than at the end.
		if err := writeReport(s.shadow.ReportFile, s.judge.Report()); err != nil {
			if s.server != nil {
				s.server.Stop()
			}
			return record.ShadowReport{}, err
		}
	}
	if s.server != nil {
		var handlers map[string]http.Handler
		if s.shadow.Handlers != nil {
			handlers = s.shadow.Handlers(s)
		}
		if err := s.server.Serve(s.follower.Health(ctx.Done()), handlers); err != nil {
			s.server.Stop()
			return record.ShadowReport{}, err
		}
		defer s.server.Stop()
	}
	klog.FromContext(ctx).Info("Following another scheduler; nothing is written", "scheduler", s.shadow.Scheduler,
		"profile", s.judge.Report().Profile, "endpoint", s.Endpoint().Address)
	inside, stop := context.WithCancel(context.WithoutCancel(ctx))
	var parts sync.WaitGroup
	defer parts.Wait()
	defer stop()
	parts.Go(func() { s.follower.Run(inside) })
	if s.shadow.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.shadow.For)
		defer cancel()
	}
	s.tellOften(ctx)
	last, err := s.tell(inside)
	if err == nil && !last.Synced && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = ErrNotSynced
	}
	return last, err
}

// tellOften writes the report repeatedly until ctx ends. A write that fails may succeed the next time.
func (s *Shadow) tellOften(ctx context.Context) {
	every := time.NewTicker(reportEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		if _, err := s.tell(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Report could not be written")
		}
	}
}

// tell writes the present report.
func (s *Shadow) tell(ctx context.Context) (record.ShadowReport, error) {
	r, err := s.Report(ctx)
	if err == nil && s.shadow.ReportFile != "" {
		err = writeReport(s.shadow.ReportFile, r)
	}
	return r, err
}

// writeReport replaces the file with a report atomically: a reader always finds one complete report.
func writeReport(file string, r record.ShadowReport) error {
	text, err := json.MarshalIndent(r, "", "    ")
	if err != nil {
		return fmt.Errorf("writing the report of the shadow: %w", err)
	}
	temporary, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*")
	if err != nil {
		return fmt.Errorf("writing the report of the shadow: %w", err)
	}
	_, err = temporary.Write(append(text, '\n'))
	if err = errors.Join(err, temporary.Chmod(0o644), temporary.Close()); err == nil {
		err = os.Rename(temporary.Name(), file)
	}
	if err != nil {
		return fmt.Errorf("writing the report of the shadow: %w", errors.Join(err, os.Remove(temporary.Name())))
	}
	return nil
}
