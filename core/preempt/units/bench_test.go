// SPDX-License-Identifier: Apache-2.0

package units_test

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/preempt/simulated"
	"github.com/kumiki-scheduler/kumiki/core/preempt/units"
)

const (
	unitsNodes   = 5000
	unitsPerNode = 4  // pods of one core on each node
	unitsRack    = 50 // nodes
)

// crowded is a cluster of 5,000 nodes of four cores that pods of low priority fill; those of gang(i, k) are in a gang.
func crowded(gang func(i, k int) string) *gangWorld {
	w := newGangWorld()
	for i := range unitsNodes {
		name := fmt.Sprintf("n%04d", i)
		w.SetNode(name, unitsPerNode, 110, fmt.Sprint("r", i/unitsRack))
		for k := range unitsPerNode {
			p := simulated.Started(simulated.Pod(fmt.Sprintf("p%04d-%d", i, k), int32((i*7+k)%3), 1), int64(1+(i*31+k*17)%100_000))
			p.Labels = map[string]string{"app": []string{"a", "b"}[k%2]}
			if g := gang(i, k); g != "" {
				p = of(g, p)
				*p.Spec.Priority = 1
			}
			w.Bind(name, p)
		}
	}
	return w
}

func solo(int, int) string { return "" }

// eights are gangs of eight whose pods are on eight nodes.
func eights(i, k int) string { return fmt.Sprint("g", i/8*4+k) }

// loner is one pod of so many cores.
func loner(cores int64) func() wish {
	return func() wish { return wish{pods: []*v1.Pod{simulated.Pod("boss", 10, cores)}, power: 10} }
}

// BenchmarkUnits is the search for the units that must go at 5,000 nodes that 20,000 pods fill, with the search for
// places that it is lent. The goals are 25 ms for a gang of 500 over pods, and 250 ms over gangs of eight.
func BenchmarkUnits(b *testing.B) {
	alike := func(n int, change func(p *v1.Pod)) func() wish {
		return func() wish {
			p := of("boss", simulated.Pod("boss", 10, 1))
			if change != nil {
				change(p)
			}
			return wish{pods: times(n, p), power: 10}
		}
	}
	for _, c := range []struct {
		name string
		gang func(i, k int) string
		ask  func() wish
		with func(w *gangWorld)
	}{
		{"500 over pods", solo, alike(500, nil), nil},
		{"500 over gangs of 8", eights, alike(500, nil), nil},
		{"500 over pods with budgets", solo, alike(500, nil), func(w *gangWorld) {
			w.SetBudget("a", 0, map[string]string{"app": "a"})
			w.SetBudget("b", 100, map[string]string{"app": "b"})
		}},
		{"100 whole nodes over pods", solo, alike(100, func(p *v1.Pod) {
			p.Spec.Containers[0].Resources.Requests = simulated.Pod("", 0, 4).Spec.Containers[0].Resources.Requests
		}), nil},
		{"100 in one rack over pods", solo, func() wish {
			ask := alike(100, nil)()
			ask.topology = []cluster.GangTopology{{Key: "zone", Required: true}}
			return ask
		}, nil},
		{"16 kinds of 4 over pods", solo, func() wish {
			var ask wish
			for k := range 16 {
				p := of("boss", simulated.Pod(fmt.Sprint("boss", k, "-"), 10, int64(1+k%4)))
				p.Labels = map[string]string{"kind": fmt.Sprint(k)}
				ask.pods = append(ask.pods, times(4, p)...)
			}
			ask.power = 10
			return ask
		}, nil},
		{"500 templates over pods", solo, func() wish {
			var ask wish
			for k := range 500 {
				p := of("boss", simulated.Pod(fmt.Sprint("boss", k), 10, int64(1+k%2)))
				p.Labels = map[string]string{"kind": fmt.Sprint(k)}
				ask.pods = append(ask.pods, p)
			}
			ask.power = 10
			return ask
		}, nil},
		{"64 one per node over pods", solo, alike(64, func(p *v1.Pod) {
			p.Labels = map[string]string{"app": "boss"}
			p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
				{LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}, TopologyKey: v1.LabelHostname}}}}
		}), nil},
		{"64 spread over racks over pods", solo, alike(64, func(p *v1.Pod) {
			p.Labels = map[string]string{"app": "boss"}
			p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: v1.DoNotSchedule,
				LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}}}
		}), nil},
		{"one pod over gangs of 8", eights, loner(2), nil},
		{"one pod over pods and a gang", func(i, k int) string {
			if i < 8 && k == 0 {
				return "g"
			}
			return ""
		}, loner(2), nil},
		{"one core over pods and a gang", func(i, k int) string {
			if i < 8 && k == 0 {
				return "g"
			}
			return ""
		}, loner(1), nil},
		{"one pod over gangs of 8 with budgets", eights, loner(2), func(w *gangWorld) {
			w.SetBudget("a", 0, map[string]string{"app": "a"})
			w.SetBudget("b", 100, map[string]string{"app": "b"})
		}},
		{"one pod too large", eights, loner(5), nil},
		{"too large for all", solo, alike(20_001, nil), nil},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := crowded(c.gang)
			if c.with != nil {
				c.with(w)
			}
			ask := c.ask()
			need := w.need(ask)
			w.Store.Begin()
			defer w.Store.Abort()
			trial := w.Store.Trial()
			defer trial.Discard()
			var f units.Finder
			q := units.Question{
				Members: need.Members, Quorum: need.Quorum, Priority: ask.power, Trial: trial,
				Fits: func() bool { return w.fits(trial, need) }, Rows: func() []cluster.NodeIdx { return w.where(trial, need) }, Rule: w.rule,
				Placement: units.Placement{Placer: w.Placer, Nominations: w.Nominations},
			}
			if len(ask.topology) > 0 {
				q.Placement.TopologyKeys = []string{"zone"}
			}
			f.FindUnits(q)
			var a units.Answer
			took := make([]time.Duration, 0, b.N)
			var before, after syscall.Rusage
			syscall.Getrusage(syscall.RUSAGE_SELF, &before)
			for b.Loop() {
				began := time.Now()
				a = f.FindUnits(q)
				took = append(took, time.Since(began))
			}
			syscall.Getrusage(syscall.RUSAGE_SELF, &after)
			used := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
			b.ReportMetric(float64(used)/float64(b.N)/1e6, "cpu-ms/op") // a busy machine changes it least
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms/median")
			b.ReportMetric(float64(a.Tried), "dry-runs/op")
			b.ReportMetric(float64(a.Loss.Units), "units")
			b.ReportMetric(float64(a.Loss.Pods), "pods")
		})
	}
}
