// SPDX-License-Identifier: Apache-2.0

package incidents

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corecluster "github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/incident"
)

// BenchmarkBundle measures how long it takes to write a bundle while 1,000 pods a second are scheduled, and how the
// duration of iterations changes meanwhile: p99 of the iterations before, and of those while a bundle is written.
func BenchmarkBundle(b *testing.B) {
	for _, pods := range []int{50_000, 150_000} {
		b.Run(fmt.Sprintf("pods=%d", pods), func(b *testing.B) {
			t := &testing.T{}
			c := newCluster(t, Options{Dir: b.TempDir(), MaxFiles: 3, MaxBytes: 1 << 30})
			for i := range 1000 {
				c.step(engine.NodeSet{Node: c.intake.Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%05d", i)},
					Status: v1.NodeStatus{Allocatable: v1.ResourceList{"cpu": resource.MustParse("64"),
						"memory": resource.MustParse("256Gi"), "pods": resource.MustParse("1000")}}})})
			}
			for i := range pods {
				c.step(engine.PodSet{Pod: c.intake.Pod(benchPod(i, fmt.Sprintf("node-%05d", i%1000)))})
			}
			c.step(engine.Synced{})
			next := pods
			iterate := func(until func() bool) (took []time.Duration) {
				for !until() {
					// The watches make records of objects, beside the loop. It takes weak pointers, which wait for the
					// end of a garbage collection.
					var pods []*corecluster.Pod
					for range 10 {
						pods = append(pods, c.intake.Pod(benchPod(next, "")))
						next++
					}
					began := time.Now()
					c.flight.TurnBegan()
					for _, pod := range pods {
						c.life(pod)
					}
					c.flight.TurnEnded(true, 0)
					took = append(took, time.Since(began))
					time.Sleep(10*time.Millisecond - time.Since(began))
				}
				slices.Sort(took)
				return took
			}
			seconds := func(n int) func() bool {
				end := time.Now().Add(time.Duration(n) * time.Second)
				return func() bool { return time.Now().After(end) }
			}
			quiet := iterate(seconds(5))
			b.ResetTimer()
			var busy []time.Duration
			for range b.N {
				done := make(chan struct{})
				go func() {
					defer close(done)
					in := c.store.Write(context.Background(), incident.Finding{Cause: incident.ByHand, At: c.now})
					b.ReportMetric(float64(in.Size)/(1<<20), "MiB")
					b.ReportMetric(float64(in.Events), "events")
				}()
				busy = append(busy, iterate(func() bool {
					select {
					case <-done:
						return true
					default:
						return false
					}
				})...)
			}
			slices.Sort(busy)
			b.ReportMetric(float64(quiet[len(quiet)*99/100].Microseconds()), "p99-before-µs")
			b.ReportMetric(float64(busy[len(busy)*99/100].Microseconds()), "p99-meanwhile-µs")
			b.ReportMetric(float64(len(busy)), "iterations")
		})
	}
}

// benchPod is one of 200 templates.
func benchPod(i int, node string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("pod-%07d-x7fk2", i),
		UID:    types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)),
		Labels: map[string]string{"app": fmt.Sprint("app-", i%200)}},
		Spec: v1.PodSpec{SchedulerName: "default-scheduler", NodeName: node, Containers: []v1.Container{{
			Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse("10m"),
				"memory": resource.MustParse(fmt.Sprint(1+i%200, "Mi"))}}}}}}
}

// life lets a pod come, be bound and go.
func (c *cluster) life(pod *corecluster.Pod) {
	c.step(engine.PodSet{Pod: pod})
	for _, f := range c.step(engine.Cycle{}) {
		if bind, is := f.(engine.Bind); is {
			c.step(engine.BindDone{Pod: bind.Pod, Node: bind.Node})
			bound := *pod
			bound.NodeName = bind.Node
			c.step(engine.PodSet{Pod: &bound})
			c.step(engine.PodGone{Pod: bind.Pod})
		}
	}
}
