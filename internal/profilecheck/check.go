// SPDX-License-Identifier: Apache-2.0

package profilecheck

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kumiki-scheduler/kumiki/apm/bottleneck"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// Options say what to check.
type Options struct {
	Cases []Case
	Seeds []uint64
	// Kumiki records. Schedulers are the programs that are recorded; Injected is kumiki with causes in it.
	Kumiki     string
	Schedulers []Scheduler
	Injected   string
	Seconds    int
	// LocalCluster is the directory of the program that starts the cluster; empty builds it.
	LocalCluster string
	// Dir keeps logs and profiles.
	Dir string
	// Journal has the results; those that it has already are not measured again.
	Journal *Journal
	// Gains: the cause is removed too, and the gain measured.
	Gains    bool
	Progress io.Writer
}

// Scheduler is a program that is recorded.
type Scheduler struct {
	Name, Program string
}

// kumikiName is the name of the scheduler that has all causes.
const kumikiName = "kumiki"

// runs reports whether a case is injected into a scheduler.
func (s Scheduler) runs(c *Case) bool { return s.Name == kumikiName || !c.Kumiki }

// turn is one injection.
type turn struct {
	scheduler Scheduler
	c         Case
	seed      uint64
}

// turns are all injections: each seed with all causes, so that an abort leaves whole seeds.
func (o *Options) turns() (list []turn) {
	for _, seed := range o.Seeds {
		for _, s := range o.Schedulers {
			for _, c := range o.Cases {
				if s.runs(&c) {
					list = append(list, turn{s, c, seed})
				}
			}
		}
	}
	return list
}

// nodes is the number of fake nodes.
const nodes = 20

// Run injects all causes, one after the other, on one cluster, and adds the results to the journal.
func Run(ctx context.Context, o Options) error {
	var left []turn
	for _, t := range o.turns() {
		if !o.Journal.has(t.scheduler.Name, t.c.Name, t.seed) {
			left = append(left, t)
		}
	}
	fmt.Fprintf(o.Progress, "%d injections, %d of them in %s already\n", len(o.turns()), len(o.turns())-len(left),
		o.Journal.name)
	if len(left) == 0 {
		return nil
	}
	cluster, err := testcluster.Launch(ctx, testcluster.Options{BinaryDir: o.LocalCluster, Nodes: nodes,
		PodStages: "none", NoKubeletAdmission: true, NoHeartbeats: true, Args: []string{
			"--apiserver-arg=--max-requests-inflight=150",
			"--apiserver-arg=--max-mutating-requests-inflight=50"}})
	if err != nil {
		return fmt.Errorf("starting the cluster: %w", err)
	}
	defer cluster.Close()
	etcd, err := interpose(filepath.Join(cluster.DataDir, "etcd.sock"))
	if err != nil {
		return err
	}
	defer etcd.Close()
	if err := cluster.Restart(testcluster.APIServer); err != nil { // connects to the slow socket
		return fmt.Errorf("restarting the API server: %w", err)
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of the cluster: %w", err)
	}
	cfg.QPS = -1
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	site := &site{o: o, cluster: cluster, client: client, etcd: etcd}
	p := newProgress(o.Progress, len(left), o.Gains, time.Now)
	for _, t := range left {
		r := site.check(ctx, t)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := o.Journal.add(r); err != nil {
			return err
		}
		p.done(&r)
	}
	return nil
}

// check injects a cause, and removes it again where a gain is predicted.
func (s *site) check(ctx context.Context, t turn) Result {
	began := time.Now()
	r := Result{Scheduler: t.scheduler.Name, Name: t.c.Name, Injected: t.c.Cause, Seed: t.seed}
	with := s.ground(t, false)
	r.Strength, r.Verdict = with.run(ctx, t)
	if with.err == nil && s.o.Gains && t.c.NoGain == "" && r.Right() {
		without := s.ground(t, true)
		_, after := without.run(ctx, t)
		if without.err == nil {
			r.Gain = gainOf(&r.Verdict, &after)
		}
		with.err = without.err
	}
	if with.err == nil && t.c.baseline {
		r.Baseline, with.err = s.baseline(ctx, t)
	}
	if with.err != nil {
		r.Error = with.err.Error()
	}
	r.Seconds = time.Since(began).Seconds()
	return r
}

// run injects the cause of a turn, or removes it, and analyses what was recorded meanwhile.
func (g *ground) run(ctx context.Context, t turn) (strength string, v bottleneck.Verdict) {
	strength = g.inject(ctx, t, func() (err error) {
		v, err = g.record(ctx)
		return err
	})
	return strength, v
}

// inject injects the cause of a turn, or removes it, for as long as do takes.
func (g *ground) inject(ctx context.Context, t turn, do func() error) (strength string) {
	defer g.end(ctx)
	if g.err = g.begin(ctx); g.err != nil {
		return ""
	}
	r := rand.New(rand.NewPCG(t.seed, uint64(len(t.c.Name))<<8|uint64(t.c.Cause)))
	if strength, g.err = t.c.inject(ctx, g, r); g.err == nil {
		g.err = do()
	}
	return strength
}
