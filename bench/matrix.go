// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"k8s.io/client-go/dynamic"

	"golang.org/x/term"

	"github.com/kumiki-scheduler/kumiki/bench/noop"
	"github.com/kumiki-scheduler/kumiki/bench/ops"
	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/testbed"
	"github.com/kumiki-scheduler/kumiki/bench/workload"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
	"github.com/kumiki-scheduler/kumiki/kube"
)

// matrix has a trial for each workload, scheduler and round.
type matrix struct {
	testbed.Options
	plans []workload.Plan
	rate  float64
	topic string
	tell  *teller
	dir   string // of recordings
	// sampled: the profiles have samples, from which a bottleneck is found.
	sampled bool
	// played: workload -> the recording that null replays, if this process recorded it.
	played map[string]played
	kept   *report.Keeper // nil when nothing is kept before the end
}

// teller prints the progress: lines, and at a terminal one line that changes.
type teller struct {
	to       io.Writer
	terminal bool
}

func newTeller(to io.Writer) *teller {
	f, isFile := to.(*os.File)
	return &teller{to: to, terminal: isFile && term.IsTerminal(int(f.Fd()))}
}

func (t *teller) clear() string {
	if t.terminal {
		return "\r\x1b[K"
	}
	return ""
}

func (t *teller) line(format string, args ...any) {
	fmt.Fprintf(t.to, t.clear()+format+"\n", args...)
}

func (t *teller) status(format string, args ...any) {
	if t.terminal {
		fmt.Fprintf(t.to, t.clear()+format, args...)
	}
}

// record runs a workload once, unmeasured, for null to replay. It records upstream's scheduler if that is built,
// because its writes are the reference. If its run fails, it records kumiki.
func (m *matrix) record(ctx context.Context, p *workload.Plan) played {
	if _, err := os.Stat(m.UpstreamBinary); err == nil {
		play := m.recordOf(ctx, p, report.Upstream)
		if play.cannot == "" || ctx.Err() != nil {
			return play
		}
		m.tell.line("%s: %s; %s is recorded", p.Name, play.cannot, report.Kumiki)
	}
	return m.recordOf(ctx, p, report.Kumiki)
}

func (m *matrix) recordOf(ctx context.Context, p *workload.Plan, by string) played {
	dir, err := os.MkdirTemp(m.dir, "recording-")
	if err != nil {
		return played{cannot: "a place for the recording: " + err.Error()}
	}
	r := noop.NewRecorder(dir)
	defer r.Tidy()
	t := m.trial(ctx, p, by, 0, "", r)
	if !t.Good() {
		return played{cannot: fmt.Sprintf("the run of %s to be played failed: %s%s", by, t.Failure, strings.Join(t.Oversold, "; "))}
	}
	recording, err := r.Recording()
	if err == nil {
		file := filepath.Join(dir, "play.json")
		if err = recording.Write(file); err == nil {
			return played{file: file}
		}
	}
	return played{cannot: fmt.Sprintf("the run of %s to be played was not understood: %v", by, err)}
}

// withoutScheduler returns the plan without its waits for scheduled pods, for a run without a scheduler.
func withoutScheduler(p workload.Plan) workload.Plan {
	var kept []workload.Op
	for _, op := range p.Ops {
		switch op := op.(type) {
		case *workload.CreatePods:
			create := *op
			create.SkipWait, create.Steady = true, 0
			kept = append(kept, &create)
		case *workload.CreatePodSets:
			sets := *op
			sets.Pods.SkipWait, sets.Pods.Steady = true, 0
			kept = append(kept, &sets)
		case *workload.Barrier, *workload.WaitForPodGroups, *workload.Sleep:
		default:
			kept = append(kept, op)
		}
	}
	p.Ops = kept
	return p
}

// trial makes one run on a separate cluster. An error becomes the failure of the trial.
func (m *matrix) trial(ctx context.Context, p *workload.Plan, name string, round int, play string, r *noop.Recorder) report.Trial {
	t := report.Trial{Workload: p.Name, Scheduler: name, Round: round}
	ctx, cancel := context.WithTimeoutCause(ctx, m.Timeout, fmt.Errorf("it was not over after %s", m.Timeout))
	defer cancel()
	if err := m.measure(ctx, p, &t, play, r); err != nil {
		t.Failure = err.Error()
	}
	return t
}

func (m *matrix) measure(ctx context.Context, p *workload.Plan, t *report.Trial, play string, r *noop.Recorder) (err error) {
	where := fmt.Sprintf("%s, %s, round %d", p.Name, t.Scheduler, t.Round)
	if _, refused := testbed.Gates(p); len(refused) > 0 && t.Round == 1 && t.Scheduler == m.Schedulers[0] { // once
		m.tell.line("%s: without %s, which this release does not let anybody set", p.Name, strings.Join(refused, ", "))
	}
	m.tell.status("%s: starting a cluster", where)
	ground := testbed.ClusterOptions(p)
	if err := r.Prepare(&ground); err != nil {
		return err
	}
	c, err := m.Launch(ctx, ground)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	b, err := testbed.NewCluster(c)
	if err != nil {
		return err
	}
	defer b.Clients.Close()
	if err := b.Quiesce(len(testbed.Controllers(p)) > 0); err != nil {
		return err
	}
	cfg, err := kube.RestConfig(kube.ClientOptions{Kubeconfig: c.Kubeconfig, QPS: -1})
	if err != nil {
		return err
	}
	objects, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return err
	}
	g := &gauge{client: b.Client, watch: ops.NewWatch(nil), servers: b.Servers, metrics: p.Metrics}
	if len(g.metrics) == 0 {
		g.metrics = usualMetrics
	}
	plan := *p
	if t.Scheduler == report.CreateOnly {
		plan = withoutScheduler(plan)
	} else {
		stop, err := m.startFor(ctx, p, t.Scheduler, play, c)
		if err != nil {
			return err
		}
		defer func() {
			stop.Close()
			_ = os.RemoveAll(filepath.Dir(stop.Log))
		}()
		g.s = stop
	}
	env := ops.Env{Client: b.Client, Dynamic: objects, Watch: g.watch, Collect: m.withBundles(m.collect(g, p), g, t),
		Profile: m.profile(g), Rate: m.rate, Patience: m.Patience}
	env.Progress = func(at ops.Progress) {
		m.tell.status("%s: %d/%d %s, %d of %d pods", where, at.Op+1, at.Ops, at.Opcode, at.Done, at.Total)
	}
	err = m.follow(ctx, g, env, plan, b, r)
	if err != nil && g.s != nil && !errors.Is(ctx.Err(), context.Canceled) {
		m.tell.line("%s, last words of the scheduler:\n%s", where, g.s.LogTail())
	}
	if g.s != nil {
		select {
		case <-g.s.Ended:
			return errors.Join(err, fmt.Errorf("the scheduler ended: %v", g.s.ExitErr))
		default:
		}
	}
	return errors.Join(err, g.fill(t, &plan), sold(ctx, b, t))
}

// startFor starts a scheduler with the settings of a workload and waits until it is ready.
func (m *matrix) startFor(ctx context.Context, p *workload.Plan, name, play string, c *testcluster.Cluster) (*testbed.Scheduler, error) {
	o := m.Options
	o.Config, o.Play = p.SchedulerConfig, play
	o.Gates, _ = testbed.Gates(p)
	dir, err := os.MkdirTemp(m.dir, "run-")
	if err != nil {
		return nil, err
	}
	s, err := testbed.Start(ctx, o, name, c.SchedulerKubeconfig, dir)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(s.Connect(c.Kubeconfig), s.WaitReady(ctx)); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// follow runs a plan together with the observers, and ends it if the scheduler ends.
func (m *matrix) follow(ctx context.Context, g *gauge, env ops.Env, plan workload.Plan, b *testbed.Cluster, r *noop.Recorder) error {
	ctx, end := context.WithCancelCause(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer end(nil)
	if g.s != nil {
		beside.Go(func() { g.follow(ctx) })
		beside.Go(func() {
			select {
			case <-g.s.Ended:
				end(fmt.Errorf("the scheduler ended: %v", g.s.ExitErr))
			case <-ctx.Done():
			}
		})
	}
	if r != nil {
		listed := make(chan struct{})
		beside.Go(func() { r.Watch(ctx, b.Clients.Watches, func() { close(listed) }) })
		select {
		case <-listed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	_, err := ops.Run(ctx, env, plan)
	if err == nil && r != nil {
		return r.Finish(ctx, b.Client, g.watch, &plan)
	}
	return err
}
