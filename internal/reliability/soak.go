// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kumiki-scheduler/kumiki/internal/e2e/checker"
	"github.com/kumiki-scheduler/kumiki/internal/fault"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// Soak is a long run: pods come and go at a steady rate, nodes change, and something breaks every half minute. Two
// processes compete for the lease, behind a proxy. The invariants are checked once a minute, from the objects of the
// API server only.
//
// In the first half of the run schedulers are also killed, stopped and asked to end. In the second half they are not;
// leadership still changes if a fault of the control plane costs the leader its lease of four seconds.
type Soak struct {
	Program  Program
	Duration time.Duration
	// Rate is pods per second, Alive how many bound pods there are before the oldest go, Nodes how many nodes of 32
	// cores.
	Rate, Alive, Nodes int
	// Seed decides about pods, nodes and faults.
	Seed     uint64
	Dir      string
	Progress io.Writer
}

// SoakReport is what came of it.
type SoakReport struct {
	Scheduler string       `json:"scheduler"`
	Seed      uint64       `json:"seed"`
	Seconds   float64      `json:"seconds"`
	Rate      int          `json:"rate"`
	Minutes   []SoakMinute `json:"minutes"`
	Faults    []SoakFault  `json:"faults"`
	// Created, Bound and Deleted count pods; Lost are those that were there to the end and never bound.
	Created int `json:"created"`
	Bound   int `json:"bound"`
	Deleted int `json:"deleted"`
	Lost    int `json:"lost"`
	// Wrong is every invariant that did not hold. It must be empty.
	Wrong []string `json:"wrong"`
	// Memory is the verdict on the memory of the leaders.
	Memory SoakMemory `json:"memory"`
}

// SoakMinute is what was seen at a minute.
type SoakMinute struct {
	Minute  float64 `json:"minute"`
	Created int     `json:"created"`
	Bound   int     `json:"bound"`
	Deleted int     `json:"deleted"`
	// Waiting are pods without a node now, Longest how long the oldest of them has waited.
	Waiting int     `json:"waiting"`
	Longest float64 `json:"longestSeconds"`
	// Of the process that leads: the heap after a garbage collection, goroutines, and how often schedulers were
	// started.
	PID        int     `json:"pid"`
	HeapMiB    float64 `json:"heapMiB"`
	Goroutines int     `json:"goroutines"`
	Starts     int     `json:"starts"`
	Wrong      int     `json:"wrong"`
}

// SoakFault is one thing that was broken on purpose.
type SoakFault struct {
	Second float64 `json:"second"`
	What   string  `json:"what"`
	Err    string  `json:"error,omitempty"`
}

// SoakMemory compares the first and the last third of the samples of the leader at the time.
type SoakMemory struct {
	Minutes int `json:"minutes"`
	// OfOne is the most looks in a row at one process.
	OfOne                           int     `json:"ofOne"`
	FirstHeapMiB, LastHeapMiB       float64 `json:",omitempty"`
	FirstGoroutines, LastGoroutines int     `json:",omitempty"`
	Flat                            bool    `json:"flat"`
}

// soaking is a Soak under way.
type soaking struct {
	Soak
	random  *rand.Rand
	cluster *testcluster.Cluster
	client  *kubernetes.Clientset
	history *checker.History
	proxy   *fault.Proxy
	pair    [2]*Scheduler
	load    *soakLoad
	began   time.Time
	report  SoakReport
}

// Run soaks and reports, also when ctx ends early. The error is about the run, not about the scheduler.
func (s Soak) Run(ctx context.Context) (SoakReport, error) {
	k := &soaking{Soak: s, random: rand.New(rand.NewPCG(s.Seed, 1)), report: SoakReport{Scheduler: s.Program.Name, Seed: s.Seed, Rate: s.Rate, Wrong: []string{}}}
	cluster, err := testcluster.Launch(ctx, testcluster.Options{NoHeartbeats: true, PodStages: "none",
		NodeSpec: fmt.Sprintf("shapes:\n- {name: a, count: %d, capacity: {cpu: \"32\", memory: 128Gi, pods: \"110\"}, labels: {topology.kubernetes.io/zone: a}}\n"+
			"- {name: b, count: %d, capacity: {cpu: \"32\", memory: 128Gi, pods: \"110\"}, labels: {topology.kubernetes.io/zone: b}}\n", s.Nodes/2, s.Nodes-s.Nodes/2)})
	if err != nil {
		return k.report, err
	}
	k.cluster = cluster
	err = k.prepare(ctx)
	if err == nil {
		err = k.soak(ctx)
	}
	k.end()
	return k.report, errors.Join(err, cluster.Close())
}

func (k *soaking) prepare(ctx context.Context) error {
	cfg, err := clientcmd.BuildConfigFromFlags("", k.cluster.Kubeconfig)
	if err != nil {
		return err
	}
	cfg.QPS = -1
	if k.client, err = kubernetes.NewForConfig(cfg); err != nil {
		return err
	}
	dir := filepath.Join(k.Dir, k.Program.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if k.proxy, err = fault.Start(dir, k.cluster.SchedulerKubeconfig); err != nil {
		return err
	}
	k.history = checker.Follow(ctx, k.client)
	for i := range k.pair {
		l := Launch{Name: fmt.Sprint("candidate-", i), Kubeconfig: k.proxy.Kubeconfig(), MayDie: true}
		if k.pair[i], err = newScheduler(k.Program, l, k.cluster.Kubeconfig, dir); err != nil {
			return err
		}
		if err := k.pair[i].Start(); err != nil {
			return err
		}
	}
	for _, one := range k.pair {
		if err := one.WaitReady(ctx); err != nil {
			return err
		}
	}
	k.load, err = newSoakLoad(ctx, k.client, k.Soak)
	return err
}

// end takes everything down.
func (k *soaking) end() {
	for _, one := range k.pair {
		if one != nil {
			one.Close()
		}
	}
	if k.proxy != nil {
		k.proxy.Clear()
		k.proxy.Heal()
		if err := k.proxy.Close(); err != nil {
			fmt.Fprintln(k.Progress, err)
		}
	}
	if k.history != nil {
		k.history.Stop()
	}
}

func (k *soaking) since() float64 { return time.Since(k.began).Seconds() }

// soak runs load, faults and looks until the time is up, and then waits for quiet.
func (k *soaking) soak(ctx context.Context) error {
	k.began = time.Now()
	working, stop := context.WithCancel(ctx)
	loading := make(chan struct{})
	go func() { defer close(loading); k.load.run(working) }()
	defer func() { stop(); <-loading }()

	nextFault, nextLook := time.Now().Add(10*time.Second), time.Now().Add(time.Minute)
	for time.Since(k.began) < k.Duration && ctx.Err() == nil {
		pause(ctx, 200*time.Millisecond)
		switch now := time.Now(); {
		case now.After(nextLook):
			nextLook = nextLook.Add(time.Minute)
			k.look(ctx, true)
		case now.After(nextFault):
			k.strike(ctx)
			nextFault = time.Now().Add(time.Duration(20+k.random.IntN(20)) * time.Second)
		}
	}
	stop()
	<-loading
	k.proxy.Clear()
	k.settle(ctx)
	k.judgeMemory()
	return ctx.Err()
}

// settle waits until every pod that is left is bound, takes a last look, and deletes them.
func (k *soaking) settle(ctx context.Context) {
	waiting := 0
	quiet, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	err := eventually(quiet, "all pods are bound", func() string {
		var longest time.Duration
		if waiting, longest = k.load.waiting(); waiting > 0 {
			return fmt.Sprintf("%d are not, the oldest for %s", waiting, longest.Round(time.Second))
		}
		return ""
	})
	if err != nil {
		k.wrong(err.Error())
		k.report.Lost = waiting
	}
	k.look(ctx, false)
	k.report.Seconds = k.since()
	m := k.report.Minutes[len(k.report.Minutes)-1]
	k.report.Created, k.report.Bound, k.report.Deleted = m.Created, m.Bound, m.Deleted
}

// once tells of something that is found again at each look.
func (k *soaking) once(what string) {
	if !slices.ContainsFunc(k.report.Wrong, func(w string) bool { return strings.HasSuffix(w, what) }) {
		k.wrong(what)
	}
}

func (k *soaking) wrong(what string) {
	k.report.Wrong = append(k.report.Wrong, fmt.Sprintf("at %.0f s: %s", k.since(), what))
}

// look samples the API server and the leader. Errors of the load itself are counted separately.
func (k *soaking) look(ctx context.Context, working bool) {
	m := SoakMinute{Minute: k.since() / 60}
	m.Created, m.Bound, m.Deleted = k.load.counts()
	waiting, longest := k.load.waiting()
	m.Waiting, m.Longest = waiting, longest.Seconds()
	before := len(k.report.Wrong)
	if found, err := k.oversold(ctx); err == nil {
		for _, f := range found {
			k.wrong(f)
		}
	}
	for _, f := range k.history.Found() {
		k.once(f)
	}
	// No fault lasts for longer than a quarter of a minute: a pod that waits for two was forgotten.
	if working && longest > 2*time.Minute {
		k.wrong(fmt.Sprintf("a pod has waited for %s", longest.Round(time.Second)))
	}
	for i, one := range k.pair {
		for _, line := range one.said() {
			if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") {
				k.once(fmt.Sprintf("candidate %d: %s", i, line))
			}
		}
	}
	m.Wrong = len(k.report.Wrong) - before
	for _, one := range k.pair {
		m.Starts += one.Starts()
		k.measure(ctx, one, &m)
	}
	k.report.Minutes = append(k.report.Minutes, m)
	fmt.Fprintf(k.Progress, "%5.1f min  created %7d  bound %7d  waiting %5d (oldest %3.0f s)  heap %5.1f MiB  goroutines %4d  starts %2d  wrong %d\n",
		m.Minute, m.Created, m.Bound, m.Waiting, m.Longest, m.HeapMiB, m.Goroutines, m.Starts, m.Wrong)
}

// oversold sums up what pods hold, on one list of each.
func (k *soaking) oversold(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	// Pods first: a node that is made after the pods were listed does no harm, a node that is missing would.
	pods, err := k.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	nodes, err := k.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	found := checker.Sums(nodes.Items, pods.Items)
	return slices.DeleteFunc(found, func(f string) bool { return strings.Contains(f, "does not exist") && k.load.nodesGo() }), nil
}

// measure asks a process for its heap after a garbage collection, if it leads.
func (k *soaking) measure(ctx context.Context, one *Scheduler, m *SoakMinute) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	metrics, err := one.Metrics(ctx)
	if err != nil || metrics[`leader_election_master_status{name="kube-scheduler"}`] != 1 {
		return
	}
	if resp, err := one.Get(ctx, "/debug/pprof/heap?gc=1"); err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	if metrics, err = one.Metrics(ctx); err != nil {
		return
	}
	m.PID, m.HeapMiB, m.Goroutines = one.PID(), metrics["go_memstats_heap_alloc_bytes"]/(1<<20), int(metrics["go_goroutines"])
}

// enoughLooks is how many looks at one process say something about it alone.
const enoughLooks = 9

// judgeMemory compares the first third of the samples of the leader with the last, and, if one process led for long
// enough, the same for that process. Memory is flat if it grew by at most a tenth and 2 MiB, and goroutines by at
// most a tenth and 10.
func (k *soaking) judgeMemory() {
	var looks, longest, run []SoakMinute
	for _, m := range k.report.Minutes {
		if m.PID == 0 {
			continue // it could not be asked, in the middle of a fault
		}
		looks = append(looks, m)
		if len(run) > 0 && run[0].PID != m.PID {
			run = nil
		}
		if run = append(run, m); len(run) > len(longest) {
			longest = run
		}
	}
	mem := compareThirds(looks)
	mem.OfOne = len(longest)
	if len(longest) >= enoughLooks {
		mem.Flat = mem.Flat && compareThirds(longest).Flat
	}
	k.report.Memory = mem
}

// compareThirds takes medians of the first and the last third of looks.
func compareThirds(looks []SoakMinute) (mem SoakMemory) {
	mem.Minutes = len(looks)
	third := len(looks) / 3
	if third == 0 {
		return mem
	}
	median := func(part []SoakMinute) (heap float64, goroutines int) {
		heaps, counts := make([]float64, len(part)), make([]int, len(part))
		for i, m := range part {
			heaps[i], counts[i] = m.HeapMiB, m.Goroutines
		}
		slices.Sort(heaps)
		slices.Sort(counts)
		return heaps[len(part)/2], counts[len(part)/2]
	}
	mem.FirstHeapMiB, mem.FirstGoroutines = median(looks[:third])
	mem.LastHeapMiB, mem.LastGoroutines = median(looks[len(looks)-third:])
	mem.Flat = mem.LastHeapMiB <= mem.FirstHeapMiB*1.1+2 && mem.LastGoroutines <= mem.FirstGoroutines*11/10+10
	return mem
}
