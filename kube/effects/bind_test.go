// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/call"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
)

// TestEachBindIsAnsweredOnceAndTruly plays the ways in which a bind can end. The answer must be what the API server
// has, and the pod must not be bound twice. It catches a binder that takes a lost reply for a failure (a second
// placement of the same pod) or for a success (a pod that is not placed).
func TestEachBindIsAnsweredOnceAndTruly(t *testing.T) {
	webhookDown := apierrors.NewInternalError(errors.New("failed calling webhook: connection refused"))
	cases := []struct {
		name    string
		prepare func(a *kubetest.APIServer)
		want    engine.BindOutcome
		node    string // answered; "a" is asked for
		applied int    // binds that the API server did for us
		unknown bool   // the outcome had to be read back
	}{
		{name: "done", want: engine.Bound, applied: 1},
		{name: "pod is gone", prepare: func(a *kubetest.APIServer) { a.Remove("ns/p") }, want: engine.PodVanished},
		{name: "another pod has the name", prepare: func(a *kubetest.APIServer) { a.Put(kubetest.PendingPod("p", "u2")) }, want: engine.PodVanished, unknown: true},
		{name: "bound by someone, same node", prepare: func(a *kubetest.APIServer) { a.Put(kubetest.BoundPod("p", "u1", "a")) }, want: engine.Bound, unknown: true},
		{name: "bound by someone, another node", prepare: func(a *kubetest.APIServer) { a.Put(kubetest.BoundPod("p", "u1", "b")) },
			want: engine.BoundElsewhere, node: "b", unknown: true},
		{name: "pod is being deleted", prepare: func(a *kubetest.APIServer) {
			p := kubetest.PendingPod("p", "u1")
			p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
			a.Put(p)
		}, want: engine.BindFailed, unknown: true},
		{name: "refused", prepare: func(a *kubetest.APIServer) {
			a.Before = kubetest.Once("bind", apierrors.NewForbidden(kubetest.PodResource, "p", errors.New("quota")))
		}, want: engine.BindFailed},
		{name: "an error three times, then done", prepare: func(a *kubetest.APIServer) { a.Before = kubetest.Times(3, "bind", webhookDown) },
			want: engine.Bound, applied: 1, unknown: true},
		// An API server of 1.37 validates the name. The answer has no reason that clients know.
		{name: "no name of a node", prepare: func(a *kubetest.APIServer) {
			a.Before = kubetest.Times(100, "bind", &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 500,
				Message: `target.name: Invalid value: "a_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters`}})
		}, want: engine.BindFailed, unknown: true},
		{name: "reply lost, was done", prepare: func(a *kubetest.APIServer) { a.After = kubetest.Once("bind", kubetest.ErrLost) },
			want: engine.Bound, applied: 1, unknown: true},
		{name: "reply lost, was not done, done again", prepare: func(a *kubetest.APIServer) { a.Before = kubetest.Once("bind", kubetest.ErrLost) },
			want: engine.Bound, applied: 1, unknown: true},
		{name: "timeout of the server, was done", prepare: func(a *kubetest.APIServer) {
			a.After = kubetest.Once("bind", apierrors.NewTimeoutError("etcd", 1))
		}, want: engine.Bound, applied: 1, unknown: true},
		{name: "never goes through", prepare: func(a *kubetest.APIServer) { a.Before = kubetest.Times(100, "bind", webhookDown) },
			want: engine.BindFailed, unknown: true},
		{name: "done, then the server is down for a while", prepare: func(a *kubetest.APIServer) {
			a.After = kubetest.Once("bind", kubetest.ErrLost)
			a.Before = kubetest.Times(9, "get", kubetest.ErrLost)
		}, want: engine.Bound, applied: 1, unknown: true},
		{name: "not done three times, then the server is down for a while", prepare: func(a *kubetest.APIServer) {
			down := kubetest.Times(9, "get", kubetest.ErrLost)
			lost := kubetest.Times(3, "bind", kubetest.ErrLost)
			a.Before = func(verb, pod string) error { return errors.Join(down(verb, pod), lost(verb, pod)) }
		}, want: engine.Bound, applied: 1, unknown: true},
		{name: "the lost bind arrives late", prepare: func(a *kubetest.APIServer) {
			tries := 0
			a.Before = func(verb, _ string) error {
				if verb != "bind" {
					return nil
				}
				if tries++; tries == 1 {
					return kubetest.ErrLost
				}
				// Before the second arrives, the first one does.
				return a.Bind(&v1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}, Target: v1.ObjectReference{Name: "a"}})
			}
		}, want: engine.Bound, applied: 1, unknown: true},
		{name: "all tries are lost, and arrive half a minute later", prepare: func(a *kubetest.APIServer) {
			a.Before = func(verb, _ string) error {
				if verb != "bind" {
					return nil
				}
				time.AfterFunc(30*time.Second, func() {
					a.Bind(&v1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}, Target: v1.ObjectReference{Name: "a"}})
				})
				return kubetest.ErrLost
			}
		}, want: engine.Bound, applied: 1, unknown: true},
		{name: "time was up for all tries, then the pod is deleted", prepare: func(a *kubetest.APIServer) {
			a.Before = kubetest.Times(1000, "bind", apierrors.NewTimeoutError("etcd", 1))
			time.AfterFunc(30*time.Second, func() { a.Remove("ns/p") })
		}, want: engine.PodVanished, unknown: true},
		{name: "time was up once, and then a webhook is down", prepare: func(a *kubetest.APIServer) {
			timeout, down := kubetest.Times(1, "bind", apierrors.NewTimeoutError("etcd", 1)), kubetest.Times(1000, "bind", webhookDown)
			a.Before = func(verb, pod string) error {
				if err := timeout(verb, pod); err != nil {
					return err
				}
				return down(verb, pod)
			}
		}, want: engine.BindFailed, unknown: true},
		{name: "refused at the second try, after the first arrived late", prepare: func(a *kubetest.APIServer) {
			tries := 0
			a.Before = func(verb, _ string) error {
				if verb != "bind" {
					return nil
				}
				if tries++; tries == 1 {
					return kubetest.ErrLost
				}
				a.Bind(&v1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}, Target: v1.ObjectReference{Name: "a"}})
				return apierrors.NewForbidden(kubetest.PodResource, "p", errors.New("a policy has changed"))
			}
		}, want: engine.Bound, applied: 1, unknown: true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pod := kubetest.PendingPod("p", "u1")
				api := kubetest.NewAPIServer(pod)
				if c.prepare != nil {
					c.prepare(api)
				}
				var answers []engine.BindDone
				var mu sync.Mutex
				m, reg := counted()
				b := NewBinder(t.Context(), api, 0, m, func(done engine.BindDone) {
					mu.Lock()
					defer mu.Unlock()
					answers = append(answers, done)
				})
				b.Bind(engine.Bind{Pod: kubetest.Ref(pod), Node: "a", Decision: 7})
				time.Sleep(time.Hour)
				synctest.Wait()
				b.Drain(t.Context())
				if len(answers) != 1 {
					t.Fatalf("got %d answers, want 1: %+v", len(answers), answers)
				}
				got := answers[0]
				if c.node == "" {
					c.node = "a"
				}
				if got.Outcome != c.want || got.Node != c.node || got.Pod != kubetest.Ref(pod) {
					t.Errorf("got %+v, want outcome %d on node %s", got, c.want, c.node)
				}
				if (got.Message == "") != (c.want == engine.Bound) {
					t.Errorf("message %q with outcome %d", got.Message, got.Outcome)
				}
				if api.Bound() != c.applied {
					t.Errorf("%d binds were applied, want %d", api.Bound(), c.applied)
				}
				if read := kubetest.Value(t, reg, "kumiki_bind_unknown_outcomes_total") > 0; read != c.unknown {
					t.Errorf("read back: %v, want %v", read, c.unknown)
				}
			})
		})
	}
}

// TestBindsRunSideBySideUpToTheLimit holds every bind back and looks how many have arrived.
func TestBindsRunSideBySideUpToTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := kubetest.NewAPIServer()
		release := make(chan struct{})
		arrived := 0
		var mu sync.Mutex
		api.Before = func(verb, _ string) error {
			mu.Lock()
			arrived++
			mu.Unlock()
			<-release
			return nil
		}
		b, answers := asked(t, api, 7, 50)
		if arrived != 7 {
			t.Errorf("%d binds are under way, want 7", arrived)
		}
		close(release)
		b.workers.Wait()
		if len(answers) != 50 {
			t.Errorf("%d answers, want 50", len(answers))
		}
	})
}

// asked is a binder that sends so many binds at once, has been asked for count of them, and is as far as it gets.
func asked(t *testing.T, api *kubetest.APIServer, atOnce, count int) (*Binder, <-chan engine.BindDone) {
	answers := make(chan engine.BindDone, count)
	m, _ := counted()
	b := NewBinder(t.Context(), api, atOnce, m, func(done engine.BindDone) { answers <- done })
	for i := range count {
		p := kubetest.PendingPod(fmt.Sprint("p", i), types.UID(fmt.Sprint("u", i)))
		api.Put(p)
		b.Bind(engine.Bind{Pod: kubetest.Ref(p), Node: "a"})
	}
	synctest.Wait()
	return b, answers
}

// TestDrainLetsBindsInFlightEndAndDropsTheRest is the hand-over: the next leader finds either a bound pod or a pending
// one.
func TestDrainLetsBindsInFlightEndAndDropsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := kubetest.NewAPIServer()
		api.Before = func(verb, pod string) error {
			time.Sleep(3 * time.Second)
			return nil
		}
		b, answers := asked(t, api, 2, 5)
		patience, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		b.Drain(patience)
		if len(answers) != 2 || api.Bound() != 2 {
			t.Errorf("%d answers and %d binds, want 2 of each", len(answers), api.Bound())
		}
		b.Bind(engine.Bind{})
		b.workers.Wait() // nothing was started
	})
}

// TestDrainGivesUpOnAnAPIServerThatIsDown ends although an outcome stays unknown, and then does not answer.
func TestDrainGivesUpOnAnAPIServerThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := kubetest.PendingPod("p", "u1")
		api := kubetest.NewAPIServer(pod)
		api.Before = func(string, string) error { return kubetest.ErrLost }
		m, _ := counted()
		b := NewBinder(t.Context(), api, 0, m, func(done engine.BindDone) { t.Errorf("answered %+v", done) })
		b.Bind(engine.Bind{Pod: kubetest.Ref(pod), Node: "a"})
		patience, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		b.Drain(patience)
	})
}

// TestNoBindIsSentWhileAnotherMayLead: it waits for the renewal.
func TestNoBindIsSentWhileAnotherMayLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := kubetest.PendingPod("p", "u1")
		api := kubetest.NewAPIServer(pod)
		answers := make(chan engine.BindDone, 1)
		m, _ := counted()
		b := NewBinder(t.Context(), api, 0, m, func(done engine.BindDone) { answers <- done })
		renewal := time.Now().Add(time.Minute)
		b.lead = func() bool { return !time.Now().Before(renewal) }
		b.Bind(engine.Bind{Pod: kubetest.Ref(pod), Node: "a"})
		time.Sleep(time.Minute - time.Millisecond)
		synctest.Wait()
		if api.Bound() != 0 {
			t.Error("a bind was sent without the lease")
		}
		if done := <-answers; done.Outcome != engine.Bound {
			t.Errorf("answered %+v", done)
		}
		b.Drain(t.Context())
	})
}

// TestABindEndsWithTheLease: one that is on its way when the lease ends without a renewal is given up at that moment,
// and read back; nothing more is sent until the lease is ours again. A lease that is renewed in time lets it be.
// Catches a bind whose time runs from its start alone: it would wait for a connection until another leads.
func TestABindEndsWithTheLease(t *testing.T) {
	for _, c := range []struct {
		name    string
		renewal time.Duration // when the lease is renewed, once, by 15 seconds
		sent    int           // calls
		gaveUp  time.Duration // when the first call ended
	}{
		{"not renewed", time.Hour, 1, 15 * time.Second},
		{"renewed in time", 10 * time.Second, 1, 20 * time.Second},
		{"renewed after it was over", 40 * time.Second, 2, 15 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pod := kubetest.PendingPod("p", "u1")
				api := kubetest.NewAPIServer(pod)
				start, sent := time.Now(), 0
				api.Held = func(ctx context.Context) error { // a connection that stands still
					sent++
					if sent > 1 {
						return nil
					}
					select {
					case <-ctx.Done():
						if took := time.Since(start); took != c.gaveUp {
							t.Errorf("given up after %v, want %v", took, c.gaveUp)
						}
						return ctx.Err()
					case <-time.After(20 * time.Second):
						return nil
					}
				}
				m, _ := counted()
				b := NewBinder(t.Context(), api, 0, m, func(engine.BindDone) {})
				b.left = func() time.Duration {
					if now := time.Since(start); now >= c.renewal {
						return c.renewal + 15*time.Second - now
					}
					return 15*time.Second - time.Since(start)
				}
				b.lead = func() bool { return b.left() > 0 }
				b.Bind(engine.Bind{Pod: kubetest.Ref(pod), Node: "a"})
				time.Sleep(50 * time.Second)
				synctest.Wait()
				if sent != c.sent || (api.Bound() == 1) != (c.renewal < time.Hour) {
					t.Errorf("%d calls, %d bound", sent, api.Bound())
				}
				b.Drain(call.Expired())
			})
		})
	}
}

// TestABindIsRecalledUntilItIsSent: a bind that waits is answered at once, one on its way by its outcome alone, and one
// of another decision is left alone. Catches a Recall that answers for a bind that was sent: the pod would be decided
// again.
func TestABindIsRecalledUntilItIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := kubetest.NewAPIServer()
		api.Before = func(verb, _ string) error {
			time.Sleep(time.Second)
			return nil
		}
		var mu sync.Mutex // workers answer, and so does who recalls
		var answers []engine.BindDone
		m, _ := counted()
		b := NewBinder(t.Context(), api, 1, m, func(done engine.BindDone) {
			mu.Lock()
			defer mu.Unlock()
			answers = append(answers, done)
		})
		answered := func() []engine.BindDone {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(answers)
		}
		var pods []*v1.Pod
		for i := range 3 {
			p := kubetest.PendingPod(fmt.Sprint("p", i), types.UID(fmt.Sprint("u", i)))
			api.Put(p)
			pods = append(pods, p)
			b.Bind(engine.Bind{Pod: kubetest.Ref(p), Node: "a", Decision: uint64(i)})
		}
		synctest.Wait()
		recall := func(i, decision int) {
			b.Recall(engine.Recall{Pod: kubetest.Ref(pods[i]), Node: "a", Decision: uint64(decision)})
		}
		recall(0, 0) // on its way
		recall(1, 9) // of another decision
		if got := answered(); len(got) != 0 {
			t.Fatalf("answered %+v", got)
		}
		recall(2, 2)
		recall(2, 2)
		want := []engine.BindDone{{Pod: kubetest.Ref(pods[2]), Node: "a", Outcome: engine.BindRecalled}}
		if got := answered(); !slices.Equal(got, want) {
			t.Fatalf("answered %+v, want %+v", got, want)
		}
		b.workers.Wait()
		for _, p := range pods[:2] {
			want = append(want, engine.BindDone{Pod: kubetest.Ref(p), Node: "a", Outcome: engine.Bound})
		}
		if got := answered(); !slices.Equal(got, want) || api.Bound() != 2 {
			t.Errorf("answered %+v, want %+v; %d binds", got, want, api.Bound())
		}
	})
}

// TestABindNamesThePodByItsUIDAlone: see docs/design/0003-fencing.md. Our own status patches change the
// resourceVersion.
func TestABindNamesThePodByItsUIDAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := kubetest.PendingPod("p", "u1")
		api := kubetest.NewAPIServer(pod)
		api.Put(pod) // a newer version than was decided on
		m, _ := counted()
		b := NewBinder(t.Context(), api, 0, m, func(engine.BindDone) {})
		b.Bind(engine.Bind{Pod: kubetest.Ref(pod), Node: "a"})
		b.workers.Wait()
		if last := api.LastBinding(); last == nil || last.UID != "u1" || last.ResourceVersion != "" || api.Bound() != 1 {
			t.Errorf("sent %+v", last)
		}
	})
}

// TestWhatABindLeavesOnAMember: the next leader reads from the pod with how many others it was decided. What is
// left is read back by the intake. Catches a bind that leaves nothing, and one of a pod by itself that leaves
// something.
func TestWhatABindLeavesOnAMember(t *testing.T) {
	for _, gang := range []*engine.GangBind{nil, {Name: "a", Quorum: 3, Decision: 7}} {
		api := kubetest.NewAPIServer(kubetest.PendingPod("p", "u1"))
		m, _ := counted()
		done := make(chan engine.BindDone, 1)
		b := NewBinder(t.Context(), api, 1, m, func(d engine.BindDone) { done <- d })
		b.Bind(engine.Bind{Pod: kubetest.Ref(api.Pod("ns/p")), Node: "n", Decision: 9, Gang: gang})
		if got := <-done; got.Outcome != engine.Bound {
			t.Fatalf("outcome %+v", got)
		}
		p := kubetest.BoundPod("p", "u1", "n")
		p.Annotations = map[string]string{"pod_group": "a"}
		for key, value := range api.LastBinding().Annotations {
			p.Annotations[key] = value
		}
		in := convert.NewIntake()
		in.DeclareGangs(convert.GangRules{Annotation: true})
		switch got := in.Pod(p).Bound; {
		case gang == nil && len(api.LastBinding().Annotations) > 0:
			t.Errorf("left %v", api.LastBinding().Annotations)
		case gang != nil && (got == nil || *got != cluster.BoundMark{Decision: 7, Quorum: 3}):
			t.Errorf("left %v, read as %+v", api.LastBinding().Annotations, got)
		}
	}
}
