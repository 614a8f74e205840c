// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/testbed"
	"github.com/kumiki-scheduler/kumiki/bench/usage"
)

// Options say what to measure.
type Options struct {
	testbed.Options
	// Rate is pods created per second; 0 creates all at once.
	Rate float64
}

// perNode is how many pods fit a node of the stand-in, by their requests of memory: 65 times 500Mi, and 40 times 100m
// of 4 processors.
const perNode = 40

var errNoPinning = errors.New(
	"bench wire gives each process a core of its own, which this program can do on Linux only")

// check refuses what cannot be measured, and returns the cores of the stand-in and of the scheduler.
func (o *Options) check() (cores [2]int, err error) {
	if !pinning {
		return cores, errNoPinning
	}
	if o.Rate < 0 {
		return cores, usage.Errorf("rate %g: it must not be below 0", o.Rate)
	}
	if err := o.Complete(); err != nil {
		return cores, err
	}
	if o.Pods > perNode*o.Nodes {
		return cores, usage.Errorf("%d pods do not fit %d nodes, which have room for %d each", o.Pods, o.Nodes, perNode)
	}
	allowed, err := coresOf()
	if err != nil {
		return cores, err
	}
	if len(allowed) < 2 {
		return cores, fmt.Errorf("the scheduler and the API server's stand-in need a core each, and this process may use "+
			"%d: on one core, the figure would be the cost of both", len(allowed))
	}
	return [2]int{allowed[0], allowed[1]}, nil
}

// Run measures all schedulers in each round.
func Run(ctx context.Context, o Options) (Report, error) {
	cores, err := o.check()
	if err != nil {
		return Report{}, err
	}
	// A process that may use one core has one processor, whatever its default.
	o.Set = testbed.Setting{Name: testbed.Procs, Value: 1}
	r := Report{Nodes: o.Nodes, Pods: o.Pods, Rate: o.Rate, Cores: cores, Siblings: siblings(cores[0], cores[1])}
	if r.Machine, err = report.ThisMachine(); err != nil {
		return Report{}, err
	}
	for round := 1; round <= o.Rounds; round++ {
		for _, name := range o.Schedulers {
			t, podBytes, err := measure(ctx, o, cores, name)
			if err != nil {
				return r, fmt.Errorf("%s, round %d: %w", name, round, err)
			}
			t.Scheduler, t.Round, r.PodBytes = name, round, podBytes
			fmt.Fprintf(o.Progress, "%s, round %d: %s\n", name, round, t.text())
			r.Trials = append(r.Trials, t)
		}
	}
	r.summarize(o.Schedulers)
	return r, nil
}

// measure measures one scheduler with a new stand-in.
func measure(ctx context.Context, o Options, cores [2]int, name string) (t Trial, podBytes int, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	dir, err := os.MkdirTemp("", "kumiki-bench-")
	if err != nil {
		return t, 0, err
	}
	defer os.RemoveAll(dir)
	l := load{nodes: o.Nodes, pods: o.Pods, rate: o.Rate, patience: o.Patience, dir: dir}
	if o.ProfileDir != "" {
		l.cpuProfile = filepath.Join(o.ProfileDir, "stand-in-of-"+filepath.Base(name)+".pprof")
	}
	var p *standinProcess
	err = onCore(cores[0], func() (err error) {
		p, err = startStandin(ctx, o.KumikiBinary, l)
		return err
	})
	if err != nil {
		return t, 0, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	if err := p.ask("", &p.hello); err != nil {
		return t, 0, err
	}
	var s *testbed.Scheduler
	err = onCore(cores[1], func() (err error) {
		s, err = testbed.Start(ctx, o.Options, name, p.Kubeconfig, dir)
		return err
	})
	if err != nil {
		return t, 0, err
	}
	defer s.Close()
	if err := s.Connect(p.Kubeconfig); err != nil {
		return t, 0, err
	}
	if err := s.WaitReady(ctx); err != nil {
		return t, 0, err
	}
	if err := testbed.Pause(ctx, settle); err != nil {
		return t, 0, err
	}
	t, err = o.trial(ctx, s, p, cores)
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, s.LogTail())
	}
	return t, p.PodBytes, err
}

// settle is how long a scheduler has after it is ready, for what it does at its start in the background.
const settle = time.Second

// trial creates the pods and measures both processes until all are bound.
func (o *Options) trial(ctx context.Context, s *testbed.Scheduler, p *standinProcess, cores [2]int) (Trial, error) {
	profiled := make(chan error, 1)
	if o.ProfileDir == "" {
		profiled <- nil
	} else {
		go func() { profiled <- s.Profile(ctx, o.ProfileDir, o.ProfileSeconds) }()
		if err := testbed.Pause(ctx, settle/2); err != nil { // the profile has begun
			return Trial{}, err
		}
	}
	before, err := clocksOf(s, p, cores)
	if err != nil {
		return Trial{}, err
	}
	var d done
	if err := p.ask(cmdCreate, &d); err != nil {
		return Trial{}, err
	}
	after, err := clocksOf(s, p, cores)
	if err != nil {
		return Trial{}, err
	}
	t := Trial{Pods: o.Pods}
	if err := p.ask(cmdReport, &t.served); err != nil {
		return Trial{}, err
	}
	if d.Error != "" {
		t.Problems = append(t.Problems, d.Error)
	}
	used, length := after.Since(before.Usage), after.at.Sub(before.at).Seconds()
	t.CPU, t.StandinCPU, t.Others = used.Scheduler, used.Servers, used.OthersShare()
	t.StandinIdle, t.Idle = (after.idle[0]-before.idle[0])/length, (after.idle[1]-before.idle[1])/length
	return t, <-profiled
}
