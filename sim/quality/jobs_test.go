// SPDX-License-Identifier: Apache-2.0

package quality

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/sim"
)

// jobFile has a gang of two pods, a row without a duration, a number of GPUs that makes no pods of 8, and a single pod.
const jobFile = "vc,arrival_s,gpus,duration_v100_s\na,110,16,100\na,120,1,\na,125,12,5\nb,130,4,10\na,100,8,50\n"

// TestJobsAreRead: jobs are sorted, and rows that cannot be used are counted.
func TestJobsAreRead(t *testing.T) {
	jobs, skipped, err := ReadJobs(strings.NewReader(jobFile), "", GPUsPerNode)
	want := "[{0 50 1 8} {10 100 2 8} {30 10 1 4}]"
	if got := fmt.Sprint(jobs); err != nil || got != want || skipped != 2 {
		t.Errorf("%s, %d skipped (%v), want %s and 2", got, skipped, err, want)
	}
	small, skipped, _ := ReadJobs(strings.NewReader(jobFile), "a", 1)
	if fmt.Sprint(small) != "[{0 50 8 1} {10 100 16 1} {25 5 12 1}]" || skipped != 1 {
		t.Errorf("with pods of one GPU: %v, %d skipped", small, skipped)
	}
	if jobs, _, _ := ReadJobs(strings.NewReader(jobFile), "b", GPUsPerNode); len(jobs) != 1 {
		t.Errorf("%d jobs of b, want 1", len(jobs))
	}
	if _, _, err := ReadJobs(strings.NewReader("vc\n"), "", GPUsPerNode); err == nil {
		t.Error("a file without columns is accepted")
	}
}

// TestFIFOBlocks: on two nodes, the gang waits for the first job, and the small job waits behind the gang, although a
// node is free.
func TestFIFOBlocks(t *testing.T) {
	jobs, _, _ := ReadJobs(strings.NewReader(jobFile), "", GPUsPerNode)
	r, err := RunJobs(jobs, NewFIFO(2))
	if err != nil {
		t.Fatal(err)
	}
	// starts at 0, 50 and 150
	if want := (0 + 40 + 120) / 3.0; r.Finished != 3 || r.MeanWait != want || r.P99Wait != 120 {
		t.Errorf("%+v, want a mean wait of %v and a p99 of 120", r, want)
	}
	if least := LeastCompletion(jobs, 2); r.MeanCompletion < least {
		t.Errorf("mean completion %v is below the bound %v", r.MeanCompletion, least)
	}
}

// production makes the production engine with the default profile.
func production() sim.Stepper {
	profile := engine.DefaultProfile(v1.DefaultSchedulerName)
	return engine.New(engine.Config{Seed: 1, Profiles: []engine.Profile{profile}, Less: basic.PrioritySort{},
		InitialBackoff: record.Second, MaxBackoff: 10 * record.Second})
}

// TestSimulatedJobs: every job ends, and the gang is bound as a whole. The small job may wait behind it.
func TestSimulatedJobs(t *testing.T) {
	jobs, _, _ := ReadJobs(strings.NewReader(jobFile), "", GPUsPerNode)
	r := SimulateJobs(jobs, 2, production, 1)
	if r.Finished != 3 || r.Partial != 0 || r.MeanWait < 40/3.0 || r.MeanWait > 180/3.0 {
		t.Errorf("%+v, want 3 jobs, and a wait of the gang and at most of the small job", r)
	}
	if r.Hold > 1 {
		t.Errorf("incomplete gangs held nodes for %v pod seconds", r.Hold)
	}
}

// TestGangsOfSmallPods: as pods of one GPU, the jobs of 8 and 4 GPUs are gangs too. No part of one is bound alone.
func TestGangsOfSmallPods(t *testing.T) {
	jobs, _, _ := ReadJobs(strings.NewReader(jobFile), "", 1)
	r := SimulateJobs(jobs, 2, production, 1)
	if r.Jobs != 4 || r.Finished != 4 || r.Partial != 0 {
		t.Errorf("%+v, want four whole jobs", r)
	}
}

// TestPartOfAGangIsCounted: binds for one of two pods are a decision for a part of a gang.
func TestPartOfAGangIsCounted(t *testing.T) {
	s := &script{}
	g := &gangWatch{Stepper: s, sizes: map[string]int{"gang": 2}}
	bind := func(names ...string) {
		s.effects = nil
		for _, name := range names {
			s.effects = append(s.effects, engine.Bind{Pod: record.PodRef{Name: name}})
		}
		g.Step(engine.Cycle{})
	}
	bind("gang-0", "gang-1")
	if bind("gang-0"); g.partial != 1 {
		t.Errorf("%d partial decisions, want 1", g.partial)
	}
}

// script is a scheduler with given effects.
type script struct{ effects []engine.Effect }

func (s *script) Step(engine.Event) []engine.Effect { return s.effects }
func (*script) Ready() bool                         { return false }
func (*script) Binding() int                        { return 0 }
