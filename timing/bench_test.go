// SPDX-License-Identifier: Apache-2.0

package timing

import (
	"fmt"
	"testing"

	"github.com/kumiki-scheduler/kumiki/record"
)

// BenchmarkPod is what the loop pays to record one pod that is bound in its first attempt: four steps, two moves that
// end a phase, a decision and a bind.
func BenchmarkPod(b *testing.B) {
	r := New(Options{})
	pods := make([]record.PodRef, 4096)
	for i := range pods {
		pods[i] = record.PodRef{Namespace: "ns", Name: fmt.Sprint("pod-", i), UID: fmt.Sprintf("0b5a2e0c-%08d", i)}
	}
	winner := &record.Candidate{Node: "node-1"}
	at := record.Time(1)
	b.ReportAllocs()
	for b.Loop() {
		p := pods[int(at)/100%len(pods)]
		r.BeginStep()
		r.Observed(p, "", at, at+5, false)
		r.Moved(&record.QueueMove{Pod: p, To: record.Active, Event: "UnscheduledPodAdd"}, at+5)
		r.EndStep(at + 6)
		r.BeginStep()
		r.Moved(&record.QueueMove{Pod: p, To: record.InFlight, Event: "Popped"}, at+10)
		r.Moved(&record.QueueMove{Pod: p, To: record.Gone, Event: "Done"}, at+20)
		r.Decided(&record.Decision{Pod: p, Verdict: record.Placed, Winner: winner}, at+20)
		r.Binding(p, "node-1", at+20)
		r.EndStep(at + 20)
		r.BeginStep()
		r.BindEnded(p, Call{Begun: at + 22, Released: at + 23, FirstByte: at + 40}, true, at+50)
		r.EndStep(at + 51)
		r.BeginStep()
		r.Bound(p, "node-1", at+60, at+61)
		r.EndStep(at + 62)
		at += 100
	}
}

// BenchmarkBoundPodUpdate is an update of a pod that is bound already: most events of a large cluster.
func BenchmarkBoundPodUpdate(b *testing.B) {
	r := New(Options{})
	p := record.PodRef{Namespace: "ns", Name: "pod", UID: "0b5a2e0c-1"}
	b.ReportAllocs()
	for b.Loop() {
		r.BeginStep()
		r.Bound(p, "node-1", 1, 2)
		r.EndStep(3)
	}
}

// BenchmarkRead is an answer with 10,000 pods.
func BenchmarkRead(b *testing.B) {
	r := New(Options{})
	for i := range 20000 {
		p := record.PodRef{Namespace: "ns", Name: fmt.Sprint("pod-", i), UID: fmt.Sprint(i)}
		at := record.Time(100 * (i + 1))
		r.BeginStep()
		r.Observed(p, "", at, at+5, false)
		for k := range record.Time(8) {
			r.Moved(&record.QueueMove{Pod: p, To: record.Active}, at+5+5*k)
		}
		r.Gone(p, at+60, at+61)
		r.EndStep(at + 62)
	}
	b.ReportAllocs()
	for b.Loop() {
		r.Read(Query{Limit: 10000}, 0, 0)
	}
}
