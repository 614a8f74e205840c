// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"slices"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/record"
)

// Options say what to measure.
type Options struct {
	// Nodes are the sizes of the clusters.
	Nodes []int
	// Families is matched against their names.
	Families *regexp.Regexp
	// Pods are placed in each run, after Warmup that are not counted and at least one of each template.
	Pods, Warmup int
	// Limit ends a run that takes longer, what was placed until then counts, and a warm-up that takes warmupLimits times as
	// long. 0 is no limit.
	Limit time.Duration
	Runs  int
	// Contenders take turns in each run; ratios are to the first.
	Contenders []Contender
	// Progress gets lines for people.
	Progress io.Writer
}

// warmupLimits: kumiki looks at each node once for each template, which takes its time at 1,000 templates.
const warmupLimits = 5

// Run is one contender's run.
type Run struct {
	Contender string `json:"contender"`
	Family    string `json:"family"`
	Nodes     int    `json:"nodes"`
	Run       int    `json:"run"`
	// Pods that were placed and counted.
	Pods int `json:"pods"`
	// PodsPerSecond of one pod after the other; Nanoseconds is the time of one.
	PodsPerSecond float64 `json:"podsPerSecond"`
	Nanoseconds   float64 `json:"nanoseconds"`
	// CPUNanoseconds is the time of all CPUs for one pod, collecting garbage included. It depends on what else the machine
	// does far less than the others.
	CPUNanoseconds float64 `json:"cpuNanoseconds"`
	// P99Nanoseconds is the time that one pod in a hundred takes longer than.
	P99Nanoseconds float64 `json:"p99Nanoseconds"`
	// Allocations and AllocatedBytes of one pod.
	Allocations    float64 `json:"allocations"`
	AllocatedBytes float64 `json:"allocatedBytes"`
	// HeapBytes is the live heap of the contender after the run, with its nodes, bound pods and all it keeps.
	HeapBytes float64 `json:"heapBytes"`
	// Paths: how nodes were looked at -> pods.
	Paths map[record.Path]int `json:"paths,omitempty"`
}

// Measure runs everything, the contenders in turn. Half as many pods as nodes are bound from the start.
func Measure(ctx context.Context, o Options) ([]Run, error) {
	var runs []Run
	for _, nodes := range o.Nodes {
		for _, f := range Families() {
			if !o.Families.MatchString(f.Name) {
				continue
			}
			for run := 1; run <= o.Runs; run++ {
				for _, c := range o.Contenders {
					if err := ctx.Err(); err != nil {
						return nil, err
					}
					r, err := o.one(ctx, c, &f, nodes)
					if err != nil {
						return nil, fmt.Errorf("%s, %d nodes, %s, run %d: %w", f.Name, nodes, c.Name, run, err)
					}
					r.Run = run
					runs = append(runs, r)
					fmt.Fprintf(o.Progress, "%s, %d nodes, run %d: %s %.0f pods/s\n", f.Name, nodes, run, c.Name, r.PodsPerSecond)
				}
			}
		}
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("no family matches %q", o.Families)
	}
	return runs, nil
}

func (o *Options) one(ctx context.Context, c Contender, f *Family, nodes int) (Run, error) {
	before := liveHeap()
	s, err := c.New()
	if err != nil {
		return Run{}, err
	}
	defer s.Close()
	for i := range nodes {
		s.AddNode(Node(i))
	}
	bound := max(nodes/2, 1)
	for i := range bound {
		s.AddBound(f.Bound(i, nodes))
	}
	next := bound
	take := func(n int) {
		pods := make([]*v1.Pod, n)
		for i := range pods {
			pods[i] = f.Pod(next + i)
		}
		s.Take(pods)
		next += n
	}
	// A pod of each template in full rounds, so that the pods that count begin with the first template.
	warm := max(o.Warmup, f.Templates)
	take((warm + f.Templates - 1) / f.Templates * f.Templates)
	if _, err := place(ctx, s, warm, warmupLimits*o.Limit, nil, nil); err != nil {
		return Run{}, err
	}
	take(o.Pods)
	each := make([]time.Duration, 0, o.Pods)
	runtime.GC()
	r := Run{Contender: c.Name, Family: f.Name, Nodes: nodes, Paths: map[record.Path]int{}}
	var start, end runtime.MemStats
	runtime.ReadMemStats(&start)
	began, cpuBegan := time.Now(), cpuTime()
	r.Pods, err = place(ctx, s, o.Pods, o.Limit, r.Paths, &each)
	took, cpu := time.Since(began), cpuTime()-cpuBegan
	if err != nil {
		return Run{}, err
	}
	runtime.ReadMemStats(&end)
	n := float64(r.Pods)
	r.PodsPerSecond, r.Nanoseconds = n/took.Seconds(), float64(took.Nanoseconds())/n
	r.CPUNanoseconds = float64(cpu.Nanoseconds()) / n
	slices.Sort(each)
	r.P99Nanoseconds = float64(each[(len(each)*99+99)/100-1].Nanoseconds())
	r.Allocations, r.AllocatedBytes = float64(end.Mallocs-start.Mallocs)/n, float64(end.TotalAlloc-start.TotalAlloc)/n
	r.HeapBytes = float64(liveHeap()) - float64(before)
	runtime.KeepAlive(s)
	return r, nil
}

// place places n taken pods, or as many as the limit allows, and retires one for each. It returns how many, and notes what
// paths were taken and what each pod took where it is given something to note that in.
func place(ctx context.Context, s Subject, n int, limit time.Duration, paths map[record.Path]int, each *[]time.Duration) (int, error) {
	began := time.Now()
	last := time.Duration(0)
	for i := range n {
		if i > 0 && limit > 0 && last > limit {
			return i, nil
		}
		if i%1024 == 0 && ctx.Err() != nil {
			return i, ctx.Err()
		}
		placed, err := s.Place(i)
		if err != nil {
			return i, err
		}
		if paths != nil && placed.Path != "" {
			paths[placed.Path]++
		}
		s.Retire()
		now := time.Since(began)
		if each != nil {
			*each = append(*each, now-last)
		}
		last = now
	}
	return n, nil
}

// cpuTime is what this process has had of all CPUs.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(fmt.Sprintf("bench/core: read the CPU time of this process: %v", err))
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
