// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
	"github.com/kumiki-scheduler/kumiki/record"
)

// TestATaskQueueYields: of tasks that take a second each, as many run as are allowed, from the second on in which that
// changes; and all of them run in the end.
func TestATaskQueueYields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var yields atomic.Bool
		var now, done atomic.Int32
		q := taskQueue[int]{mu: &mu, limit: 5, yields: yields.Load, do: func(int) {
			now.Add(1)
			time.Sleep(time.Second)
			now.Add(-1)
			done.Add(1)
		}}
		push := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			for range n {
				q.push(0)
			}
		}
		expect := func(what string, running, ended int32) {
			t.Helper()
			synctest.Wait()
			if now.Load() != running || done.Load() != ended {
				t.Errorf("%s: %d run and %d have ended, want %d and %d", what, now.Load(), done.Load(), running, ended)
			}
		}
		push(40)
		time.Sleep(500 * time.Millisecond) // what follows happens in the middle of tasks
		expect("the limit", 5, 0)
		yields.Store(true)
		expect("none is interrupted", 5, 0)
		time.Sleep(time.Second)
		expect("it yields", yielding, 5)
		push(1)
		expect("a new task starts no worker", yielding, 5)
		yields.Store(false)
		time.Sleep(time.Second)
		expect("the limit again, without a new task", 5, 5+yielding)
		yields.Store(true)
		time.Sleep(time.Minute)
		expect("all have ended", 0, 41)
		push(3)
		expect("an idle queue starts no more either", yielding, 41)
		time.Sleep(time.Minute)
	})
}

// TestConditionsLeaveTheAPIServerToBinds: while many binds are under way, two workers write conditions and two write
// events; when the binds have ended, there are as many as ever.
func TestConditionsLeaveTheAPIServerToBinds(t *testing.T) {
	for binds, want := range map[int]int{manyBinds - 1: patchesInFlight, manyBinds: yielding} {
		t.Run(fmt.Sprint(binds, " binds"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := kubetest.NewAPIServer()
				slow := func(string, string) error { time.Sleep(time.Second); return nil }
				api.Before, api.Held = slow, func(context.Context) error { time.Sleep(10 * time.Second); return nil }
				known := knownPods{}
				m, _ := counted()
				executor := NewExecutor(t.Context(), Config{Binds: api, Patches: api, Events: slowEvents{api}, Known: known, Metrics: m,
					Answer: func(engine.Event) {}, Reporter: "default-scheduler", Hostname: "host"})
				var refs []record.PodRef
				for i := range binds + 30*patchesInFlight {
					name := fmt.Sprint("p", i)
					pod := api.Put(kubetest.PendingPod(name, types.UID(name)))
					known[name] = kubetest.NewRecord(pod)
					refs = append(refs, kubetest.Ref(pod))
				}
				for _, pod := range refs[:binds] {
					executor.Bind(engine.Bind{Pod: pod, Node: "n"})
				}
				synctest.Wait()
				for _, pod := range refs[binds:] {
					executor.SetCondition(engine.Condition{Pod: pod, Reason: "Unschedulable", Message: "m"})
					executor.WriteEvent(engine.WriteEvent{Pod: pod, Type: v1.EventTypeWarning, Reason: "FailedScheduling"})
				}
				for _, want := range []int{want, patchesInFlight} {
					synctest.Wait()
					patches, events := workersOf(&executor.Patcher.pods), workersOf(&executor.Events.queue)
					if patches != want || events != want {
						t.Errorf("%d write conditions and %d events, want %d", patches, events, want)
					}
					time.Sleep(12 * time.Second)
				}
				time.Sleep(time.Hour)
				executor.Patcher.Stop()
				executor.Events.Stop(t.Context())
			})
		})
	}
}

// slowEvents is an API server that takes a second for each event.
type slowEvents struct{ kubernetes.Interface }

func (s slowEvents) EventsV1() eventsclient.EventsV1Interface {
	return slowEventsClient{s.Interface.EventsV1()}
}

type slowEventsClient struct{ eventsclient.EventsV1Interface }

func (slowEventsClient) Events(string) eventsclient.EventInterface { return slowEvent{} }

type slowEvent struct{ eventsclient.EventInterface }

func (slowEvent) Create(_ context.Context, e *eventsv1.Event, _ metav1.CreateOptions) (*eventsv1.Event, error) {
	time.Sleep(time.Second)
	return e, nil
}

// workersOf returns how many workers a queue has.
func workersOf[T any](q *taskQueue[T]) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.running
}

// knownPods are pods by UID.
type knownPods map[string]*cluster.Pod

func (k knownPods) Pod(r record.PodRef) *cluster.Pod                     { return k[r.UID] }
func (k knownPods) Gang(cluster.GangKey) *cluster.Gang                   { return nil }
func (k knownPods) GangVersion(cluster.GangSource) string                { return "" }
func (k knownPods) Unwritten(cluster.Kind, cluster.Target) metav1.Object { return nil }
