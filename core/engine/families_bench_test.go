// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/bench/core"
)

// BenchmarkFamily is one pod from pending to seen bound, by workload and number of nodes, as `kumiki bench core`
// measures it: this is for profiles. Half as many pods as nodes are there, and the oldest goes for each that comes.
func BenchmarkFamily(b *testing.B) {
	for _, nodes := range []int{1000, 5000, 15_000, 50_000, 100_000} {
		for _, f := range core.Families() {
			b.Run(fmt.Sprintf("%s/nodes=%d", f.Name, nodes), func(b *testing.B) { benchFamily(b, &f, nodes) })
		}
	}
}

func benchFamily(b *testing.B, f *core.Family, nodes int) {
	s, err := core.Kumiki(1 << 30).New()
	if err != nil {
		b.Fatal(err)
	}
	for i := range nodes {
		s.AddNode(core.Node(i))
	}
	for i := range nodes / 2 {
		s.AddBound(f.Bound(i, nodes))
	}
	next := nodes / 2
	place := func(n int) {
		for i := range n {
			if _, err := s.Place(i); err != nil {
				b.Fatal(err)
			}
			s.Retire()
		}
	}
	take := func(n int) int {
		pods := make([]*v1.Pod, n)
		for i := range pods {
			pods[i] = f.Pod(next + i)
		}
		s.Take(pods)
		next += n
		return n
	}
	place(take(max(100, f.Templates))) // a class for each template
	take(b.N)
	b.ReportAllocs()
	b.ResetTimer()
	place(b.N)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
}
