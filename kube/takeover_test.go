// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/call"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
)

// othersLease is a lease that another holds and does not renew.
func othersLease() *coordinationv1.Lease {
	other, seconds, now := "other", int32(15), metav1.NowMicro()
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-scheduler"},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &other, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now}}
}

// hearsay keeps what an engine receives about pods and nodes.
type hearsay struct {
	mu     sync.Mutex
	events []string
}

func (o *hearsay) observe(ev engine.Event, _ []engine.Effect) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch ev := ev.(type) {
	case engine.PodSet:
		o.events = append(o.events, "pod "+ev.Pod.Name+" on "+ev.Pod.NodeName)
	case engine.NodeSet:
		o.events = append(o.events, "node "+ev.Node.Name)
	case engine.PodGone, engine.NodeGone:
		o.events = append(o.events, fmt.Sprintf("%T", ev))
	}
}

func (o *hearsay) since(n int) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.events[n:]...)
}

// TestATakeOverPassesOnlyChangesToTheEngine: a standby has followed the cluster; from the new lists the engine gets
// only the difference. It fails with an inbox that forgets what the engine has taken while lists are awaited, and
// with a take-over that does not list.
func TestATakeOverPassesOnlyChangesToTheEngine(t *testing.T) {
	api := kubetest.NewAPIServer()
	for i := range 6 {
		api.Put(kubetest.BoundPod(fmt.Sprint("old", i), types.UID(fmt.Sprint("o", i)), "n1"))
	}
	api.Put(kubetest.PendingPod("missed", "m"))
	keepLeases(api, othersLease())
	seen := &hearsay{}
	wholeScenario(t, true, api, func(t *testing.T, w *whole) {
		w.after(5 * time.Second)
		before := len(seen.since(0))
		if before != 2+7 {
			t.Fatalf("the standby took %q", seen.since(0))
		}
		if got := kubetest.Value(t, w.reg, "kumiki_takeover_seconds"); got != 0 {
			t.Errorf("a standby took over in %v seconds", got)
		}
		api.Silence()
		if err := api.Bind(&v1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "missed", UID: "m"}, Target: v1.ObjectReference{Name: "n2"}}); err != nil {
			t.Fatal(err)
		}
		w.after(time.Minute)
		if got := seen.since(before); len(got) != 1 || got[0] != "pod missed on n2" {
			t.Errorf("after the take-over the engine took %q, want only the bind that was missed", got)
		}
		if !w.Election.Contested() {
			t.Error("a lease that another held counts as never held")
		}
	}, func(o *wholeOptions) { o.observers = []Observer{seen.observe} })
}

// TestALeaseThatWasFreeNeedsNoSecondList: who finds the lease free and takes it on top of that has listed after anyone
// else could bind. It would fail with an election that takes every lease for a contested one, or none.
func TestALeaseThatWasFreeNeedsNoSecondList(t *testing.T) {
	for name, tt := range map[string]struct {
		lease *coordinationv1.Lease
		lists int
	}{
		"none":      {nil, 1},
		"released":  {&coordinationv1.Lease{ObjectMeta: othersLease().ObjectMeta}, 1},
		"left over": {othersLease(), 2},
	} {
		t.Run(name, func(t *testing.T) {
			api := kubetest.NewAPIServer(kubetest.PendingPod("p", "u1"))
			keepLeases(api, tt.lease)
			wholeScenario(t, true, api, func(t *testing.T, w *whole) {
				w.after(time.Minute)
				if w.on("ns/p") == "" {
					t.Error("the pod was not bound")
				}
				if got := api.Listed(); got != tt.lists {
					t.Errorf("pods were listed %d times, want %d", got, tt.lists)
				}
				if got := kubetest.Value(t, w.reg, "kumiki_takeover_seconds"); got < 0 || got > 1 {
					t.Errorf("kumiki_takeover_seconds is %v", got)
				}
			})
		})
	}
}

// slowLeases are leases that take their time to be read.
type slowLeases struct {
	coordinationclient.LeasesGetter
	wait time.Duration
}

func (s slowLeases) Leases(namespace string) coordinationclient.LeaseInterface {
	return slowLease{s.LeasesGetter.Leases(namespace), s.wait}
}

type slowLease struct {
	coordinationclient.LeaseInterface
	wait time.Duration
}

func (s slowLease) Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error) {
	if !call.Sleep(ctx, s.wait) {
		return nil, ctx.Err()
	}
	return s.LeaseInterface.Get(ctx, name, o)
}

// TestTheListsComeAfterTheFirstLookAtTheLease: what is listed before might miss the last bind of one who then gives the
// lease back. It would fail with a scheduler that lists at once, and with one that waits for a lease that cannot be
// read.
func TestTheListsComeAfterTheFirstLookAtTheLease(t *testing.T) {
	api := kubetest.NewAPIServer(kubetest.PendingPod("p", "u1"))
	wholeScenario(t, true, api, func(t *testing.T, w *whole) {
		w.after(2 * time.Second)
		if api.Listed() != 0 {
			t.Errorf("pods were listed before the lease was read")
		}
		w.after(2 * time.Second)
		if api.Listed() != 1 || w.on("ns/p") == "" {
			t.Errorf("%d lists, pod on %q", api.Listed(), w.on("ns/p"))
		}
	}, func(o *wholeOptions) { o.slowLease = 3 * time.Second })
	api = kubetest.NewAPIServer()
	wholeScenario(t, true, api, func(t *testing.T, w *whole) {
		w.after(time.Minute)
		if api.Listed() != 1 {
			t.Errorf("%d lists although the lease cannot be read: a standby follows the cluster", api.Listed())
		}
	}, func(o *wholeOptions) { o.slowLease = time.Hour })
}
