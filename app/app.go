// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/component-base/compatibility"
	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/host/framework"
	"github.com/kumiki-scheduler/kumiki/kube"
	"github.com/kumiki-scheduler/kumiki/kube/call"
	"github.com/kumiki-scheduler/kumiki/kube/effects"
	"github.com/kumiki-scheduler/kumiki/kube/instances"
	"github.com/kumiki-scheduler/kumiki/kube/intake"
	"github.com/kumiki-scheduler/kumiki/kube/metrics"
	"github.com/kumiki-scheduler/kumiki/kube/serve"
	"github.com/kumiki-scheduler/kumiki/kube/wire"
	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/timing"
)

// Options make a scheduler.
type Options struct {
	Config config.Resolved
	// Plugins are the plugins that Config was read with: the default ones, and those that NewPlugins was given.
	Plugins Plugins
	// Master overrides the API server's address in the kubeconfig. Kubeconfig overrides the one in Config.
	Master, Kubeconfig string
	// Rest, when set, is how the API server is reached, and the kubeconfig is not read.
	Rest  *rest.Config
	Serve serve.Options
	// UnschedulableTimeout is how long a rejected pod waits for an event before it is tried without one.
	UnschedulableTimeout time.Duration
	// AuditPeriod is how often the watches are checked against lists; 0 for never.
	AuditPeriod time.Duration
	// Observers see every event with its effects, in order, on the loop's goroutine. They must not keep the effects.
	Observers []kube.Observer
	// Attach is called with the engine before it runs, and returns further observers. It may be nil.
	Attach func(*engine.Engine) []kube.Observer
	// Flight makes the flight recorder of the engine. The scheduler is not complete then: it may only be asked after it
	// was started. It may be nil.
	Flight func(*engine.Engine, *Scheduler) kube.Flight
	// Handlers makes further handlers by path, behind authentication; a path that ends in a slash takes everything
	// below. It may be nil.
	Handlers func(*Scheduler) map[string]http.Handler
	// Version is the version of kube-scheduler that this one replaces and emulates; nil is that of the libraries.
	Version compatibility.EffectiveVersion
	// CoordinatedElection lets the API server choose the leader (KEP-4355, gate CoordinatedLeaderElection).
	CoordinatedElection bool
	// Metrics is the registry to count in; nil means the metrics that /metrics of this process serves.
	Metrics *metrics.Metrics
}

// DefaultOptions returns the options of kube-scheduler without flags.
func DefaultOptions() Options {
	return Options{Config: config.Default(), Serve: serve.DefaultOptions(), UnschedulableTimeout: 5 * time.Minute,
		AuditPeriod: intake.DefaultAuditPeriod}
}

// Scheduler is an assembled scheduler that does not run yet.
type Scheduler struct {
	engine  *engine.Engine
	inner   *kube.Scheduler
	timing  *timing.Recorder
	clock   call.Clock // of timing
	answers *call.Answers
	clients *kube.Clients
	server  *serve.Server // nil when serving is off
	opts    Options
	drop    context.CancelFunc // ends calls that are still in progress
	// startHosted starts what plugins of kube-scheduler's framework use, and returns what ends it; nil without such
	// plugins.
	startHosted func(context.Context) func()
	host        *framework.Host // of plugins of kube-scheduler's framework
}

// NewScheduler assembles a scheduler. It binds the port and sends a few requests to configure authentication; an API
// server that is down is not an error.
func NewScheduler(ctx context.Context, o Options) (*Scheduler, error) {
	s := &Scheduler{opts: o}
	cfg, err := s.rest()
	if err != nil {
		return nil, err
	}
	s.clock = call.NewClock()
	s.timing = timing.New(timing.Options{Epoch: rand.Text(), Since: s.clock.Now()})
	recorded := rest.CopyConfig(cfg)
	recorded.Wrap(call.Recorded(s.clock, s.timing.Requested))
	s.answers = call.NewAnswers(s.clock)
	recorded.Wrap(s.answers.Observed)
	if s.clients, err = kube.NewClients(recorded); err != nil {
		return nil, err
	}
	var env framework.Env
	hosts := o.Plugins.Hosts(o.Config)
	if hosts {
		env = s.environment(ctx, cfg, s.clients) // what plugins request with clients of their own is not recorded
	}
	engineConfig, host, err := o.Plugins.Hosted(o.Config, env)
	if err != nil {
		return nil, err
	}
	s.host = host
	engineConfig.UnschedulableTimeout = record.Time(o.UnschedulableTimeout)
	meter := metrics.NewMeter()
	engineConfig.Meter = meter
	inbox := newInbox(ctx, o.Config, o.Plugins.Kinds(o.Config, engineConfig), hosts)
	inbox.UseClock(s.clock)
	via, objects, err := extend(ctx, o.Config.Extenders, inbox, host, &engineConfig)
	if err != nil {
		return nil, err
	}
	share(o.Config, &engineConfig)
	if hosts && engineConfig.Instances != nil {
		return nil, errHostedPlanners
	}
	if hosts {
		s.opts.Observers = append(slices.Clone(o.Observers), observe(host))
	}
	s.engine = engine.New(engineConfig)
	host.ReadPending(s.engine.View().AllPending)
	if o.Attach != nil {
		s.opts.Observers = slices.Concat(s.opts.Observers, o.Attach(s.engine))
	}
	if s.server, err = s.serve(); err != nil {
		return nil, err
	}
	planners := s.planners(ctx, objects)
	if err := s.assemble(ctx, meter, inbox, via, planners, callsForeign(engineConfig.Profiles)); err != nil {
		if s.server != nil {
			s.server.Stop()
		}
		return nil, err
	}
	return s, nil
}

// counts returns the metrics in which the scheduler counts.
func (s *Scheduler) counts() *metrics.Metrics {
	if s.opts.Metrics != nil {
		return s.opts.Metrics
	}
	return metrics.Process()
}

func (s *Scheduler) rest() (*rest.Config, error) {
	if s.opts.Rest != nil {
		return s.opts.Rest, nil
	}
	c := s.opts.Config.ClientConnection
	if s.opts.Kubeconfig != "" {
		c.Kubeconfig = s.opts.Kubeconfig
	}
	return kube.RestConfig(kube.ClientOptions{
		Kubeconfig: c.Kubeconfig, Master: s.opts.Master, AcceptContentTypes: c.AcceptContentTypes,
		ContentType: c.ContentType,
		QPS:         c.QPS, Burst: int(c.Burst),
	})
}

// serve binds the port. Callers are authorized with the scheduler's own kubeconfig unless another is named: upstream
// then treats all of them as anonymous, which would leave a scheduler outside the cluster without authorized callers.
func (s *Scheduler) serve() (*serve.Server, error) {
	o := s.opts.Serve
	if o.Secure == nil {
		return nil, nil
	}
	kubeconfig := s.opts.Kubeconfig
	if kubeconfig == "" {
		kubeconfig = s.opts.Config.ClientConnection.Kubeconfig
	}
	if o.Authentication.RemoteKubeConfigFile == "" {
		o.Authentication.RemoteKubeConfigFile = kubeconfig
	}
	if o.Authorization.RemoteKubeConfigFile == "" {
		o.Authorization.RemoteKubeConfigFile = kubeconfig
	}
	o.Version = s.opts.Version
	o.Profiling, o.ContentionProfiling = s.opts.Config.Profiling, s.opts.Config.ContentionProfiling
	shown, _ := s.opts.Config.WithoutKeys()
	file, err := shown.Wire()
	if err != nil {
		return nil, err
	}
	o.Config = file
	return serve.NewServer(o)
}

func (s *Scheduler) assemble(ctx context.Context, meter *metrics.Meter, inbox *intake.Inbox,
	via effects.BindVia, planners *instances.Runner, foreign bool) error {
	hostname, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("host name, for events and the lease: %w", err)
	}
	counts := s.counts()
	counts.ShowTiming(s.timing)
	counts.SetLimit(metrics.InFlightLimit, float64(s.opts.Config.Kumiki.InFlightBinds))
	if period := s.opts.Config.Kumiki.SessionPeriod; period > 0 {
		counts.SetLimit(metrics.SessionPeriod, period.Seconds())
	}
	// Calls outlive ctx: those in progress when it ends are handed over.
	calls, drop := context.WithCancel(context.WithoutCancel(ctx))
	s.drop = drop
	binds, events := s.writes()
	var loop *kube.Loop
	executor := effects.NewExecutor(calls, effects.Config{
		// Patches and the lease go with the watches, which send little: under a qps, neither may wait behind binds or
		// events.
		Binds: s.clients.Binds, Patches: s.clients.Watches, Events: s.clients.Events, Objects: s.clients.Dynamic,
		BindWrites: binds, EventWrites: events,
		BindsInFlight: s.opts.Config.Kumiki.InFlightBinds, BindVia: via, Known: inbox, Metrics: counts,
		Answer:      func(done engine.Event) { loop.Answer(done) },
		AnswerBind:  func(done engine.BindDone, t *call.Trace) { loop.AnswerBind(done, t) },
		AnswerEvict: func(done engine.EvictDone, deletes []call.Trace) { loop.AnswerEvict(done, deletes) },
		Reporter:    s.opts.Config.Profiles[0].SchedulerName, Hostname: hostname,
	})
	var flight kube.Flight
	if s.opts.Flight != nil {
		flight = s.opts.Flight(s.engine, s)
	}
	loop = kube.NewLoop(kube.LoopConfig{
		Flight: flight, Planners: planners,
		Engine: s.engine, Inbox: inbox, Executor: executor, Metrics: counts, Meter: meter, Observers: s.opts.Observers,
		SchedulerNames: schedulerNames(s.opts.Config.Profiles), Timing: s.timing, Foreign: foreign,
	})
	informers := intake.NewInformers(s.clients.Watches, inbox)
	informers.Dynamic = s.clients.Dynamic
	s.inner = &kube.Scheduler{Informers: informers, Loop: loop, Executor: executor,
		DelayWatches: s.opts.Config.DelayCacheUntilActive, AuditPeriod: s.opts.AuditPeriod}
	if c := s.opts.Config.LeaderElection; c.Enabled {
		lease := kube.LeaseConfig{
			Client: s.clients.Watches.CoordinationV1(), Namespace: c.Namespace, Name: c.Name, Hostname: hostname,
			LeaseDuration: c.LeaseDuration, RenewDeadline: c.RenewDeadline, RetryPeriod: c.RetryPeriod,
			Schedulers: schedulerNames(s.opts.Config.Profiles), Pod: ownPod(hostname),
		}
		if s.server != nil {
			lease.Endpoint = s.server.Endpoint()
		}
		if s.opts.CoordinatedElection {
			lease.Candidates, lease.Version = s.clients.Watches, s.opts.Version
		}
		if s.inner.Election, err = kube.NewElection(lease); err != nil {
			return err
		}
	}
	return nil
}

// writes returns how binds and events are sent.
func (s *Scheduler) writes() (binds, events wire.Writes) {
	if s.opts.Config.Kumiki.Wire == config.TypedClients {
		return wire.Typed(s.clients.Binds), wire.Typed(s.clients.Events)
	}
	return s.clients.BindWrites, s.clients.EventWrites
}

// callsForeign reports whether a Step may call foreign code: an extender, or a hosted plugin.
func callsForeign(profiles []engine.Profile) bool {
	return slices.ContainsFunc(profiles, func(p engine.Profile) bool { return p.Foreign != nil })
}

// Endpoint returns where the scheduler serves; its address is empty if serving is off.
func (s *Scheduler) Endpoint() serve.Endpoint {
	if s.server == nil {
		return serve.Endpoint{}
	}
	return s.server.Endpoint()
}

// Ask runs f on the goroutine that owns the engine, between two batches, and returns when f has run. f must not keep
// the engine or what it got from it.
func (s *Scheduler) Ask(ctx context.Context, f func(*engine.Engine)) error {
	return s.inner.Loop.Ask(ctx, func() { f(s.engine) })
}

// Hold stops decisions until it is called with false; the scheduler goes on following the cluster. It may be called
// before Run. The end of a pause that the lease requested ends it, too.
func (s *Scheduler) Hold(on bool) { s.inner.Loop.Hold(on) }

// Synced returns a channel that is closed when the scheduler knows the pods and nodes of the cluster.
func (s *Scheduler) Synced() <-chan struct{} { return s.inner.Loop.Synced() }

// Unanswered returns which requests to the API server have no answer.
func (s *Scheduler) Unanswered() call.Unanswered { return s.answers.Unanswered() }

// Leads reports whether this scheduler may schedule: it knows the cluster, and holds the lease unless there is no
// leader election. renewed is when the lease was last renewed, 0 without one.
func (s *Scheduler) Leads() (leads bool, renewed record.Time) {
	if e := s.inner.Election; e != nil {
		at := e.Renewed()
		if at.IsZero() {
			return false, 0
		}
		renewed = s.clock.At(at)
	}
	select {
	case <-s.Synced():
		return true, renewed
	default:
		return false, renewed
	}
}

// Timing returns where the time of pods and requests went, as far as a query selects it.
func (s *Scheduler) Timing(q timing.Query) record.Timing {
	return s.timing.Read(q, s.clock.Now(), record.Time(time.Now().UnixNano()))
}

// Paused returns the pause that the lease requests, nil if it requests none.
func (s *Scheduler) Paused() *record.Pause { return s.inner.Paused().Record() }

// Run schedules until ctx ends and then hands over, or until the lease is lost, which is an error. It runs once.
func (s *Scheduler) Run(ctx context.Context) error {
	defer s.clients.Close()
	defer s.drop()
	if s.server != nil {
		health := s.inner.Health(ctx.Done())
		if err := s.server.Serve(health, s.handlers()); err != nil {
			s.server.Stop()
			return err
		}
		defer s.server.Stop()
	}
	if s.startHosted != nil {
		defer s.startHosted(ctx)()
	}
	dumps, stop := kube.DumpSignals()
	defer stop()
	s.inner.Dumps = dumps
	klog.FromContext(ctx).Info("Scheduling", "profiles", len(s.opts.Config.Profiles), "endpoint", s.Endpoint().Address,
		"seed", s.opts.Config.Kumiki.Seed)
	return s.inner.Run(ctx)
}

// Run assembles a scheduler and runs it.
func Run(ctx context.Context, o Options) error {
	s, err := NewScheduler(ctx, o)
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

// serviceAccountNamespace is where a pod finds its namespace.
const serviceAccountNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// ownPod returns namespace/name of this process's pod: as the environment (downward API) says, else its namespace with
// the host name, which is the pod's name without hostNetwork. It returns an empty string for a static pod without
// these variables, and outside of pods.
func ownPod(hostname string) string {
	namespace, name := os.Getenv("POD_NAMESPACE"), cmp.Or(os.Getenv("POD_NAME"), hostname)
	if namespace == "" {
		text, err := os.ReadFile(serviceAccountNamespace)
		if err != nil {
			return ""
		}
		namespace = strings.TrimSpace(string(text))
	}
	return namespace + "/" + name
}

// schedulerNames returns the scheduler names of profiles, in their order.
func schedulerNames(profiles []config.Profile) []string {
	names := make([]string, len(profiles))
	for i, p := range profiles {
		names[i] = p.SchedulerName
	}
	return names
}
