// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kumiki-scheduler/kumiki/internal/e2e/checker"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// Outcome of a case.
type Outcome string

// The outcomes. NotRun also stands for a case that could not be put to the scheduler.
const (
	Held   Outcome = "held"
	Broke  Outcome = "broke"
	NotRun Outcome = "not run"
)

// Result is one case put to one scheduler once.
type Result struct {
	Case      string  `json:"case"`
	What      string  `json:"what"`
	Scheduler string  `json:"scheduler"`
	Run       int     `json:"run"`
	Outcome   Outcome `json:"outcome"`
	// Why says what broke, or why it was not run.
	Why string `json:"why,omitempty"`
	// Failed says that the case could not be put to the scheduler although it should have been.
	Failed bool `json:"failed,omitempty"`
	// Seconds from the beginning until every verdict was there; OthersSeconds is how long an ordinary pod waited
	// after it.
	Seconds       float64 `json:"seconds"`
	OthersSeconds float64 `json:"othersSeconds"`
	// Deaths counts how often the scheduler ended by itself.
	Deaths int `json:"deaths"`
	// BindsLost counts pods that had to be placed and were not; BindsDouble counts pods that changed their node.
	BindsLost   int `json:"bindsLost"`
	BindsDouble int `json:"bindsDouble"`
}

// Options of a run of the suite.
type Options struct {
	Cases    []Case
	Programs []Program
	Runs     int
	// Dir keeps the logs of the schedulers.
	Dir string
	// Progress gets lines for people.
	Progress io.Writer
}

// Run runs every case with every scheduler, on a fresh cluster for each, and returns the results, even if it ends
// early.
func Run(ctx context.Context, o Options) ([]Result, error) {
	var all []Result
	for _, p := range o.Programs {
		results, err := runProgram(ctx, o, p)
		all = append(all, results...)
		if err != nil {
			return all, fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	return all, nil
}

// suite is one scheduler's cluster.
type suite struct {
	o         Options
	program   Program
	cluster   *testcluster.Cluster
	base      Ground // what all grounds share
	scheduler *Scheduler
}

func runProgram(ctx context.Context, o Options, p Program) ([]Result, error) {
	s, err := openSuite(ctx, o, p)
	if err != nil {
		return nil, err
	}
	defer s.close()
	var results []Result
	for run := range o.Runs {
		for _, c := range o.Cases {
			r := Result{Case: c.ID, What: c.What, Scheduler: p.Name, Run: run, Outcome: NotRun, Why: c.NotRun}
			if c.NotRun == "" {
				s.play(ctx, c, &r)
			}
			if ctx.Err() != nil {
				return results, ctx.Err()
			}
			results = append(results, r)
			fmt.Fprintf(o.Progress, "%-14s %-5s %-8s %6.1fs  %s%s\n", p.Name, c.ID, r.Outcome, r.Seconds, c.What, behind(": ", r.Why))
		}
	}
	return results, nil
}

func behind(sep, text string) string {
	if text == "" {
		return ""
	}
	return sep + text
}

// nodesOfOthers are where ordinary pods go.
const nodesOfOthers = `
shapes:
- name: others
  count: 2
  capacity: {cpu: "16", memory: 64Gi, pods: "110"}
  labels: {` + caseLabel + `: ` + others + `}
`

func openSuite(ctx context.Context, o Options, p Program) (*suite, error) {
	fmt.Fprintf(o.Progress, "%s: starting a cluster\n", p.Name)
	cluster, err := testcluster.Launch(ctx, testcluster.Options{NodeSpec: nodesOfOthers, NoHeartbeats: true, Progress: nil,
		Args: []string{"--controllers-arg=--pvclaimbinder-sync-period=1s"}})
	if err != nil {
		return nil, err
	}
	s := &suite{o: o, program: p, cluster: cluster}
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(err, cluster.Close())
	}
	return s, nil
}

func (s *suite) prepare(ctx context.Context) error {
	cfg, err := clientcmd.BuildConfigFromFlags("", s.cluster.Kubeconfig)
	if err != nil {
		return err
	}
	cfg.QPS = -1
	s.base = Ground{Program: s.program, Rest: cfg, Cluster: s.cluster, dir: filepath.Join(s.o.Dir, s.program.Name)}
	if err := os.MkdirAll(s.base.dir, 0o700); err != nil {
		return err
	}
	if s.base.Client, err = kubernetes.NewForConfig(cfg); err != nil {
		return err
	}
	if s.base.Dynamic, err = dynamic.NewForConfig(cfg); err != nil {
		return err
	}
	s.base.History = checker.Follow(ctx, s.base.Client)
	if s.scheduler, err = newScheduler(s.program, Launch{Name: "shared", Kubeconfig: s.cluster.SchedulerKubeconfig}, s.cluster.Kubeconfig, s.base.dir); err != nil {
		return err
	}
	return openNamespace(ctx, s.base.Client, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: others}})
}

func (s *suite) close() {
	s.scheduler.Close()
	s.base.History.Stop()
	if err := s.cluster.Close(); err != nil {
		fmt.Fprintln(s.o.Progress, err)
	}
}

// ground creates the namespace and the nodes of a case.
func (s *suite) ground(ctx context.Context, c Case, run int) (*Ground, error) {
	g := &Ground{
		Name: fmt.Sprintf("%s-%d", strings.ToLower(c.ID), run), Program: s.base.Program, Client: s.base.Client, Dynamic: s.base.Dynamic,
		Rest: s.base.Rest, Cluster: s.cluster, History: s.base.History, dir: s.base.dir,
		shrunk: map[string]bool{}, placed: map[string]bool{}, unplaced: map[string]bool{},
	}
	if c.Own {
		s.scheduler.Terminate()
		return g, g.open(ctx)
	}
	g.Scheduler = s.scheduler
	if err := s.scheduler.Start(); err != nil {
		return g, err
	}
	return g, errors.Join(s.scheduler.WaitReady(ctx), g.open(ctx))
}

// play runs a case and checks the state afterwards.
func (s *suite) play(ctx context.Context, c Case, r *Result) {
	g, err := s.ground(ctx, c, r.Run)
	if err != nil {
		r.fail(fmt.Errorf("prepare: %w", err))
		return
	}
	deaths := map[*Scheduler]int{} // scheduler -> how often it had died before
	for _, one := range g.Schedulers() {
		deaths[one] = len(one.Deaths(0))
	}
	moved := len(g.History.Found())
	began := time.Now()
	in, cancel := context.WithTimeout(ctx, c.limit())
	err = c.Run(in, g)
	cancel()
	r.Seconds = time.Since(began).Seconds()
	r.Outcome, r.Why = Held, ""
	if isUnjudged(err) {
		r.fail(err)
	} else {
		r.broke(err)
	}
	took, err := g.Healthy(ctx)
	r.OthersSeconds = took.Seconds()
	r.broke(err)
	faults, err := g.Findings(ctx)
	r.broke(err)
	for i, f := range faults {
		if i < 3 {
			r.broke(errors.New(f))
		}
	}
	for _, f := range g.History.Found()[moved:] {
		r.BindsDouble++
		r.broke(errors.New(f))
	}
	for _, one := range g.Schedulers() {
		for _, d := range one.Deaths(deaths[one]) {
			r.Deaths++
			r.broke(errors.New(d))
		}
	}
	for _, lost := range g.unplaced {
		if lost {
			r.BindsLost++
		}
	}
	if err := g.close(ctx); err != nil {
		fmt.Fprintf(s.o.Progress, "%s: cleaning up after %s: %v\n", s.program.Name, c.ID, err)
	}
}

// fail records that the case could not be run.
func (r *Result) fail(err error) {
	r.Outcome, r.Why, r.Failed = NotRun, err.Error(), true
}

// broke adds the errors of the scheduler, if there are any.
func (r *Result) broke(err error) {
	if err == nil || r.Failed {
		return
	}
	if r.Outcome = Broke; r.Why != "" {
		r.Why += "; "
	}
	r.Why += strings.ReplaceAll(err.Error(), "\n", "; ")
}
