// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"time"
)

// Scenario is a workload. All pods request one core, except probes, which request nothing.
type Scenario struct {
	Name string
	// Issue is the report of the known failure, What describes it.
	Issue, What  string
	Nodes, Cores int // nodes, and cores of each
	Batches      []Batch
	// Probe is how often a pod without requests is created and deleted, as by periodic jobs; 0 for never.
	Probe time.Duration
	// Until is when the run ends at the latest.
	Until time.Duration
}

// Batch is a set of pods that are created together.
type Batch struct {
	// Gang is the gang that they are in; empty for pods by themselves. Several batches may be in one.
	Gang string
	Name string
	Pods int
	// Size is how many pods the gang needs.
	Size int
	// At is when they are created.
	At time.Duration
	// Run is for how long they run once all of them are bound; 0 for without limit.
	Run time.Duration
	// Dies is when they end in any case; 0 for never.
	Dies time.Duration
	// Running is set if the pods are on the first node before the scheduler starts.
	Running bool
	// Aside excludes the batch from the measurement.
	Aside bool
}

// Slots is how many pods the nodes hold.
func (s Scenario) Slots() int { return s.Nodes * s.Cores }

const second = time.Second

// Scenarios are all workloads.
func Scenarios() []Scenario {
	return []Scenario{jobs(), deadlock(), starvation(), lostWakeUp(), headOfLine(), largeAmongSmall(), quiet()}
}

// jobs is the report of scheduler-plugins#117 at a fifth of its times: jobs of 1 to 8 pods for 2 machines of 8 GPUs,
// more than they can take at a time; and, between them, gangs of 12, which are large enough that one pod less is a
// small share.
func jobs() Scenario {
	s := Scenario{Name: "many jobs", Issue: "scheduler-plugins#117, #114", What: "gangs of 1 to 8 and of 12 for 16 slots, one every 3 s, each runs 6 s",
		Nodes: 2, Cores: 8, Probe: 5 * second, Until: 400 * second}
	sizes := []int{5, 3, 12, 8, 1, 6, 2, 12, 7, 4, 8, 3, 12, 6, 5, 1, 8, 12, 2, 7, 4, 6, 12, 3}
	for i, n := range sizes {
		name := fmt.Sprintf("g%02d", i)
		s.Batches = append(s.Batches, Batch{Gang: name, Name: name, Pods: n, Size: n, At: time.Duration(i) * 3 * second, Run: 6 * second})
	}
	return s
}

// deadlock is that report reduced to two gangs: one has all slots but one when capacity for the other becomes free, and
// the other arrives just then.
func deadlock() Scenario {
	return Scenario{Name: "interleaving", Issue: "scheduler-plugins#117, #114", What: "two gangs of 10 that run 5 s for 18 slots; half of them come free when the second gang comes",
		Nodes: 2, Cores: 9, Probe: 5 * second, Until: 400 * second,
		Batches: []Batch{{Name: "old", Pods: 9, Running: true, Dies: 10 * second, Aside: true},
			{Gang: "a", Name: "a", Pods: 10, Size: 10, At: 9500 * time.Millisecond, Run: 5 * second}, {Gang: "b", Name: "b", Pods: 10, Size: 10, At: 10 * second, Run: 5 * second}}}
}

// starvation is scheduler-plugins#713: of a gang of 10 one pod finds no slot for long, and small pods want capacity.
func starvation() Scenario {
	s := Scenario{Name: "starvation", Issue: "scheduler-plugins#713", What: "a gang of 10, 9 slots free for 80 s; a pod by itself every 2 s that runs 4 s",
		Nodes: 3, Cores: 4, Probe: 5 * second, Until: 400 * second}
	s.Batches = append(s.Batches, Batch{Name: "old", Pods: 3, Running: true, Dies: 80 * second, Aside: true}, Batch{Gang: "big", Name: "big", Pods: 10, Size: 10, At: 2 * second, Run: 20 * second})
	for i := range 30 {
		s.Batches = append(s.Batches, Batch{Name: fmt.Sprintf("small%02d", i), Pods: 1, At: time.Duration(5+2*i) * second, Run: 4 * second})
	}
	return s
}

// lostWakeUp is scheduler-plugins#1001: two of four pods of a running gang are replaced, and the capacity for them
// becomes free one after the other.
func lostWakeUp() Scenario {
	return Scenario{Name: "lost wake-up", Issue: "scheduler-plugins#1001", What: "2 of 4 pods that run are lost; the room for the 2 that come for them is free 10 s apart",
		Nodes: 1, Cores: 4, Until: 500 * second,
		Batches: []Batch{
			{Gang: "c", Name: "c1", Pods: 2, Size: 4, Running: true, Aside: true}, {Gang: "c", Name: "c2", Pods: 2, Size: 4, Running: true, Dies: 20 * second, Aside: true},
			{Name: "other", Pods: 1, At: 20 * second, Run: 10 * second, Aside: true},
			{Gang: "c", Name: "c3", Pods: 2, Size: 4, At: 22 * second},
		}}
}

// headOfLine is scheduler-plugins#110 and #874: a gang that does not fit for long is older than many that would.
func headOfLine() Scenario {
	s := Scenario{Name: "head of line", Issue: "scheduler-plugins#110, #874", What: "a gang of 8 for 4 free slots of 8, for 60 s; behind it 10 gangs of 2 that run 5 s",
		Nodes: 2, Cores: 4, Probe: 5 * second, Until: 400 * second}
	s.Batches = append(s.Batches, Batch{Name: "old", Pods: 4, Running: true, Dies: 60 * second, Aside: true}, Batch{Gang: "head", Name: "head", Pods: 8, Size: 8, At: 2 * second, Run: 10 * second})
	for i := range 10 {
		name := fmt.Sprintf("b%02d", i)
		s.Batches = append(s.Batches, Batch{Gang: name, Name: name, Pods: 2, Size: 2, At: time.Duration(4+3*i) * second, Run: 5 * second})
	}
	return s
}

// largeAmongSmall is a gang that needs the whole cluster while small pods take all capacity that becomes free.
func largeAmongSmall() Scenario {
	s := Scenario{Name: "large among small", Issue: "k/k#71486, KAI#1969", What: "a gang of 12 for 12 slots that pods by themselves keep full: one every second for 120 s, each runs 10 s",
		Nodes: 3, Cores: 4, Probe: 5 * second, Until: 400 * second}
	for i := range 120 {
		if i == 20 {
			s.Batches = append(s.Batches, Batch{Gang: "big", Name: "big", Pods: 12, Size: 12, At: 20 * second, Run: 5 * second})
		}
		s.Batches = append(s.Batches, Batch{Name: fmt.Sprintf("small%03d", i), Pods: 1, At: time.Duration(i) * second, Run: 10 * second, Aside: true})
	}
	return s
}

// quiet is one gang in an empty cluster where nothing else happens.
func quiet() Scenario {
	return Scenario{Name: "quiet cluster", Issue: "pfnet: read in its code", What: "one gang of 4 in an empty cluster, and nothing else",
		Nodes: 1, Cores: 4, Until: 120 * second,
		Batches: []Batch{{Gang: "a", Name: "a", Pods: 4, Size: 4, At: second, Run: 5 * second}}}
}
