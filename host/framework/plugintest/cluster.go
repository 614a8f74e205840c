// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/host/framework"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Options are what a Cluster is made of.
type Options struct {
	// Plugins are the plugins under test.
	Plugins []framework.Registration
	// Hooks add to the CycleState; the zero value adds nothing.
	Hooks framework.Hooks
	// Config is the text of a configuration file. If it is empty, the default profile enables all Plugins at
	// multiPoint.
	Config string
	// Start is the time at which the cluster starts; the zero value is 1 January 2026.
	Start time.Time
}

// Cluster is a scheduler with plugins, and the objects that it sees. Only the goroutine of the test may use it.
type Cluster struct {
	t       testing.TB
	engine  *engine.Engine
	host    *framework.Host
	intake  *convert.Intake
	kinds   []cluster.Kind // that a scheduler with the configuration watches
	client  *fake.Clientset
	objects informers.SharedInformerFactory
	name    string // of the first profile
	now     record.Time
	wake    record.Time // when the engine asked for a tick last; it may be over
	version int         // of the newest object

	pods  map[types.NamespacedName]*v1.Pod // the version that the engine has
	nodes map[string]*v1.Node              // the same
	last  map[types.NamespacedName]record.Decision
	made  map[string]fwk.Plugin // name -> what the factory made last
	lent  map[string]fwk.Handle // profile -> what its plugins received

	mu       sync.Mutex     // guards what plugins write from their goroutines
	posted   []engine.Event // not stepped yet
	events   []Event
	problems []framework.Problem
}

// Start starts a scheduler without objects. A configuration that is wrong, or a factory that fails, fails the test.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	c, err := start(t, o)
	if err != nil {
		t.Fatalf("starting the scheduler: %v", err)
	}
	return c
}

// start is Start, with its error.
func start(t testing.TB, o Options) (*Cluster, error) {
	begin := o.Start
	if begin.IsZero() {
		begin = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	}
	c := &Cluster{t: t, intake: convert.NewIntake(), now: record.Time(begin.UnixNano()),
		pods: map[types.NamespacedName]*v1.Pod{}, nodes: map[string]*v1.Node{},
		last: map[types.NamespacedName]record.Decision{}, made: map[string]fwk.Plugin{}, lent: map[string]fwk.Handle{}}
	c.client = newClient()
	c.objects = informers.NewSharedInformerFactory(c.client, 0)
	plugins, err := app.Plugins{}.WithFramework(c.watched(o.Plugins)...)
	if err != nil {
		return nil, err
	}
	plugins = plugins.WithFrameworkHooks(o.Hooks)
	text := o.Config
	if text == "" {
		text = enableAll(o.Plugins)
	}
	resolved, err := plugins.ParseConfig([]byte(text))
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(func() {
		stop()
		c.objects.Shutdown()
	})
	made, host, err := plugins.Hosted(resolved, framework.Env{Context: ctx, Client: c.client, Informers: c.objects,
		Recorder: recorder{c}, Post: c.post, Report: c.report, Limits: config.Hosted{Check: true}})
	if err != nil {
		return nil, err
	}
	made.UnschedulableTimeout = 5 * 60 * record.Second
	c.engine, c.host, c.kinds, c.name = engine.New(made), host, plugins.Kinds(resolved, made),
		resolved.Profiles[0].SchedulerName
	host.ReadPending(c.engine.View().AllPending)
	c.intake.KeepFull()
	c.objects.StartWithContext(ctx)
	c.objects.WaitForCacheSyncWithContext(ctx)
	c.step(engine.Tick{Now: c.now})
	c.step(engine.Synced{})
	c.Settle()
	return c, nil
}

// watched returns the registrations with factories that note what they make, for Plugin and Handle.
func (c *Cluster) watched(in []framework.Registration) []framework.Registration {
	out := slices.Clone(in)
	for i, r := range out {
		if r.Type == nil { // Check would make it without a cluster; the profile makes it once
			out[i].Undeclared = true
		}
		out[i].Factory = func(ctx context.Context, args runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
			pl, err := r.Factory(ctx, args, h)
			c.made[r.Name], c.lent[h.ProfileName()] = pl, h
			return pl, err
		}
	}
	return out
}

// enableAll returns a configuration whose default profile enables plugins at multiPoint.
func enableAll(plugins []framework.Registration) string {
	out := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n" +
		"- schedulerName: " + v1.DefaultSchedulerName + "\n  plugins: {multiPoint: {enabled: ["
	for _, r := range plugins {
		out += fmt.Sprintf("{name: %s}, ", r.Name)
	}
	return out + "]}}\n"
}

// Plugin returns what the factory of a plugin made, of the last profile if several enable it.
func (c *Cluster) Plugin(name string) fwk.Plugin {
	c.t.Helper()
	if c.made[name] == nil {
		c.t.Fatalf("no profile enables plugin %s", name)
	}
	return c.made[name]
}

// Handle returns the Handle of the plugins of the first profile.
func (c *Cluster) Handle() fwk.Handle {
	c.t.Helper()
	if c.lent[c.name] == nil {
		c.t.Fatalf("profile %s enables no plugin of kube-scheduler's framework", c.name)
	}
	return c.lent[c.name]
}

// Client returns the client of the plugins. What is written with it is seen by the scheduler at the next step.
func (c *Cluster) Client() *fake.Clientset { return c.client }

// Now returns the time.
func (c *Cluster) Now() time.Time { return time.Unix(0, int64(c.now)).UTC() }

// Advance moves the time, in steps at which the scheduler asks to be called.
func (c *Cluster) Advance(d time.Duration) {
	c.t.Helper()
	until := c.now + record.Time(d)
	for c.wake > c.now && c.wake < until {
		c.tick(c.wake)
	}
	c.tick(until)
}

func (c *Cluster) tick(at record.Time) {
	c.t.Helper()
	c.now = at
	c.step(engine.Tick{Now: at})
	c.Settle()
}

// steps bounds the work that follows from one change.
const steps = 100_000

// Settle runs the scheduler until it has nothing to do. It is needed only after a plugin has acted on a goroutine of
// its own, or a test has used Client or Handle.
func (c *Cluster) Settle() {
	c.t.Helper()
	for range steps {
		c.pull()
		switch ev, ok := c.next(); {
		case ok:
			c.step(ev)
		case c.engine.Ready():
			c.step(engine.Cycle{})
		default:
			return
		}
	}
	c.t.Fatalf("the scheduler still has work after %d steps", steps)
}

// post receives an event of a plugin, from any goroutine.
func (c *Cluster) post(ev engine.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.posted = append(c.posted, ev)
}

// next returns the oldest event of plugins.
func (c *Cluster) next() (engine.Event, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.posted) == 0 {
		return nil, false
	}
	ev := c.posted[0]
	c.posted = c.posted[1:]
	return ev, true
}

// report receives a misbehaviour of a plugin.
func (c *Cluster) report(p framework.Problem) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.problems = append(c.problems, p)
}

// Problems returns the misbehaviours of plugins so far: panics, scores out of range, methods that are absent.
func (c *Cluster) Problems() []framework.Problem {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.problems)
}
