// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
)

type (
	podStore  = store[*v1.Pod, *cluster.Pod]
	nodeStore = store[*v1.Node, *cluster.Node]
)

func newTestInbox(t testing.TB, kinds ...cluster.Kind) (*Inbox, podStore, nodeStore) {
	in := NewInbox(func(object string, problem any) { t.Errorf("%s: %v", object, problem) }, kinds...)
	return in, newPodStore(in), newNodeStore(in)
}

// taken returns the taken events as one line: +node, -node, +pod/uid@node, -pod/uid, synced.
func taken(in *Inbox, limit int) string {
	events, _ := in.Take(nil, limit)
	words := []string{}
	for _, ev := range events {
		switch ev := ev.(type) {
		case engine.NodeSet:
			words = append(words, "+"+ev.Node.Name)
		case engine.NodeGone:
			words = append(words, "-"+ev.Name)
		case engine.PodSet:
			words = append(words, fmt.Sprintf("+%s/%s@%s", ev.Pod.Name, ev.Pod.UID, ev.Pod.NodeName))
		case engine.PodGone:
			words = append(words, fmt.Sprintf("-%s/%s", ev.Pod.Name, ev.Pod.UID))
		case engine.ObjectSet:
			words = append(words, fmt.Sprintf("+%s:%s", cluster.KindOf(ev.Object), ev.Object.GetName()))
		case engine.ObjectGone:
			words = append(words, fmt.Sprintf("-%s:%s", ev.Kind, ev.Key.Name))
		case engine.Synced:
			words = append(words, "synced")
		}
	}
	return strings.Join(words, " ")
}

func expectTaken(t testing.TB, in *Inbox, want string) {
	t.Helper()
	if got := taken(in, 1000); got != want {
		t.Errorf("took %q, want %q", got, want)
	}
}

func opened(t testing.TB) (*Inbox, podStore, nodeStore) {
	in, pods, nodes := newTestInbox(t)
	pods.Replace(nil, "1")
	nodes.Replace(nil, "1")
	expectTaken(t, in, "synced")
	return in, pods, nodes
}

func version(p *v1.Pod, rv string) *v1.Pod {
	p = p.DeepCopy()
	p.ResourceVersion = rv
	return p
}

// TestNothingIsTakenBeforeBothListsAreIn catches a loop that decides with half of the cluster known: all nodes and no
// bound pods look like an empty cluster.
func TestNothingIsTakenBeforeBothListsAreIn(t *testing.T) {
	in, pods, nodes := newTestInbox(t)
	nodes.Replace([]any{kubetest.Node("n2"), kubetest.Node("n1")}, "1")
	expectTaken(t, in, "")
	if !in.Behind() || !in.Listed().IsZero() {
		t.Error("not behind although the pods are not listed")
	}
	nodes.Add(kubetest.Node("n0")) // a watch event between the lists
	pods.Replace([]any{kubetest.BoundPod("b", "u1", "n1"), kubetest.PendingPod("a", "u2")}, "1")
	if got := taken(in, 3); got != "+n0 +n1 +n2" {
		t.Errorf("first took %q", got)
	}
	if !in.Behind() {
		t.Error("not behind although the pods are not taken")
	}
	expectTaken(t, in, "+b/u1@n1 +a/u2@ synced")
	if in.Behind() || in.Listed().IsZero() {
		t.Error("behind although everything is taken")
	}
	if nodes, bound := in.Known(); nodes != 3 || bound != 1 {
		t.Errorf("took %d nodes and %d bound pods", nodes, bound)
	}
}

// TestPendingPodsComeInTheOrderOfTheirCreation catches a restart after which pods are tried by name: those of a
// Deployment that was created last would go before others that have waited for hours.
func TestPendingPodsComeInTheOrderOfTheirCreation(t *testing.T) {
	in, pods, nodes := newTestInbox(t)
	nodes.Replace([]any{kubetest.Node("n")}, "1")
	at := func(p *v1.Pod, second int64) *v1.Pod {
		p.CreationTimestamp = metav1.Unix(second, 0)
		return p
	}
	bound := at(kubetest.PendingPod("d", "u4"), 40)
	bound.Spec.NodeName = "n"
	pods.Replace([]any{at(kubetest.PendingPod("a", "u1"), 30), bound, at(kubetest.PendingPod("c", "u3"), 20),
		at(kubetest.PendingPod("b", "u2"), 20), at(kubetest.PendingPod("e", "u5"), 10)}, "1")
	expectTaken(t, in, "+n +d/u4@n +e/u5@ +b/u2@ +c/u3@ +a/u1@ synced")

	// After the lists, what comes first goes first.
	pods.Add(at(kubetest.PendingPod("g", "u7"), 60))
	pods.Add(at(kubetest.PendingPod("f", "u6"), 50))
	expectTaken(t, in, "+g/u7@ +f/u6@")
}

// TestManyVersionsOfAPodAreOne keeps the backlog bounded by the objects there are.
func TestManyVersionsOfAPodAreOne(t *testing.T) {
	in, pods, _ := opened(t)
	pods.Add(version(kubetest.PendingPod("p", "u1"), "2"))
	pods.Update(version(kubetest.PendingPod("p", "u1"), "3"))
	pods.Update(version(kubetest.BoundPod("p", "u1", "n"), "4"))
	expectTaken(t, in, "+p/u1@n")
}

func TestAPodThatCameAndWentIsNotReported(t *testing.T) {
	in, pods, _ := opened(t)
	pods.Add(kubetest.PendingPod("p", "u1"))
	pods.Delete(kubetest.PendingPod("p", "u1"))
	expectTaken(t, in, "")
	if len(in.pods.rows) != 0 {
		t.Errorf("%d pods are kept", len(in.pods.rows))
	}
}

// TestANameThatComesAgainIsAnotherPod catches an inbox that keys by name alone: the engine would keep the capacity
// of the pod before, or forget the new one.
func TestANameThatComesAgainIsAnotherPod(t *testing.T) {
	in, pods, _ := opened(t)
	pods.Add(kubetest.BoundPod("p", "u1", "n"))
	expectTaken(t, in, "+p/u1@n")
	pods.Delete(kubetest.BoundPod("p", "u1", "n"))
	pods.Add(kubetest.PendingPod("p", "u2"))
	expectTaken(t, in, "-p/u1 +p/u2@")
	pods.Update(kubetest.PendingPod("p", "u3")) // the delete was never seen
	expectTaken(t, in, "-p/u2 +p/u3@")
}

func TestAnUpdateBeforeTheAddIsAnAdd(t *testing.T) {
	in, pods, nodes := opened(t)
	pods.Update(kubetest.PendingPod("p", "u1"))
	nodes.Update(kubetest.Node("n"))
	expectTaken(t, in, "+p/u1@ +n")
	pods.Delete(kubetest.PendingPod("other", "u9"))
	nodes.Delete(kubetest.Node("other"))
	expectTaken(t, in, "")
}

// TestAListWithoutAPodIsItsEnd covers what a watch that broke has missed.
func TestAListWithoutAPodIsItsEnd(t *testing.T) {
	in, pods, nodes := opened(t)
	for _, name := range []string{"a", "b", "c"} {
		pods.Add(kubetest.BoundPod(name, types.UID("u"+name), "n"))
		nodes.Add(kubetest.Node("n" + name))
	}
	taken(in, 1000)
	pods.Replace([]any{kubetest.BoundPod("b", "ub", "n")}, "9")
	nodes.Replace([]any{kubetest.Node("nc")}, "9")
	expectTaken(t, in, "-a/ua -c/uc -na -nb")
}

// TestAListThatStreamedInIsTheSameList goes the way of the reflector's watch-list: objects are converted one by one.
func TestAListThatStreamedInIsTheSameList(t *testing.T) {
	in, pods, nodes := newTestInbox(t)
	store := cache.NewStore(cache.DeletionHandlingMetaNamespaceKeyFunc, cache.WithTransformer(pods.Transformer()))
	store.Add(kubetest.PendingPod("p", "u1"))
	store.Add(kubetest.BoundPod("q", "u2", "n"))
	store.Delete(kubetest.BoundPod("q", "u2", "n"))
	pods.Replace(store.List(), "1")
	store = cache.NewStore(cache.DeletionHandlingMetaNamespaceKeyFunc, cache.WithTransformer(nodes.Transformer()))
	store.Add(kubetest.Node("n"))
	nodes.Replace(store.List(), "1")
	expectTaken(t, in, "+n +p/u1@ synced")
}

func TestADeleteWhoseObjectIsUnknownGoesByName(t *testing.T) {
	in, pods, nodes := opened(t)
	pods.Add(kubetest.BoundPod("p", "u1", "n"))
	nodes.Add(kubetest.Node("n"))
	taken(in, 1000)
	pods.Delete(cache.DeletedFinalStateUnknown{Key: "ns/p"})
	nodes.Delete(cache.DeletedFinalStateUnknown{Key: "n"})
	expectTaken(t, in, "-p/u1 -n")
}

// TestWhatTheEngineDoesNotReadIsNotReported keeps kubelets' status writes away from the loop, while a pending pod's
// versions still reach the patcher.
func TestWhatTheEngineDoesNotReadIsNotReported(t *testing.T) {
	in, pods, nodes := opened(t)
	pods.Add(version(kubetest.BoundPod("p", "u1", "n"), "2"))
	nodes.Add(kubetest.Node("n"))
	pods.Add(version(kubetest.PendingPod("q", "u2"), "3"))
	taken(in, 1000)

	running := version(kubetest.BoundPod("p", "u1", "n"), "4")
	running.Status.Phase = v1.PodRunning
	running.Status.PodIP = "10.0.0.1"
	pods.Update(running)
	beat := kubetest.Node("n")
	beat.ResourceVersion = "5"
	beat.Status.Conditions = nil
	nodes.Update(beat)
	expectTaken(t, in, "")

	pods.Update(version(kubetest.PendingPod("q", "u2"), "6"))
	if got := in.Pod(kubetest.Ref(kubetest.PendingPod("q", "u2"))).ResourceVersion; got != "6" {
		t.Errorf("newest version of the pending pod is %s, want 6", got)
	}
	expectTaken(t, in, "+q/u2@")
}

// TestAFreshListHoldsEverythingBack is the new leader's: it must not decide on the view of a standby.
func TestAFreshListHoldsEverythingBack(t *testing.T) {
	in, pods, nodes := opened(t)
	pods.Add(kubetest.PendingPod("p", "u1"))
	in.awaitLists()
	expectTaken(t, in, "")
	pods.Replace([]any{kubetest.BoundPod("p", "u1", "n")}, "5")
	expectTaken(t, in, "")
	if !in.Behind() {
		t.Error("not behind although the nodes are not listed")
	}
	nodes.Replace(nil, "5")
	expectTaken(t, in, "+p/u1@n")
	if in.Behind() {
		t.Error("behind although everything is taken")
	}
}

// TestTakenEventsMatchTheAPIServer plays random histories against a reference implementation that keeps the objects
// of the API server. Events are taken in random portions. Once the queue is empty, the engine's view equals the API
// server's; a UID is set only while no other UID of its name is set, and is gone only after it was set. Catches: a
// row that is taken twice, a delete lost to coalescing.
func TestTakenEventsMatchTheAPIServer(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in, pods, nodes := newTestInbox(t)
		truth := map[string]string{}   // name -> uid@node in the API server
		engines := map[string]string{} // name -> uid@node that the engine received
		names := rapid.SampledFrom([]string{"a", "b", "c"})
		next := 0
		listed := false
		list := func() {
			var objs []any
			for name, state := range truth {
				uid, on, _ := strings.Cut(state, "@")
				objs = append(objs, kubetest.BoundPod(name, types.UID(uid), on))
			}
			pods.Replace(objs, "1")
			nodes.Replace(nil, "1")
			listed = true
		}
		take := func(limit int) {
			events, _ := in.Take(nil, limit)
			if len(events) > 0 && !listed {
				rt.Fatal("took something before the lists were in")
			}
			for _, ev := range events {
				switch ev := ev.(type) {
				case engine.PodSet:
					name, uid := ev.Pod.Name, string(ev.Pod.UID)
					if had, ok := engines[name]; ok && !strings.HasPrefix(had, uid+"@") {
						rt.Fatalf("set %s/%s while the engine has %s", name, uid, had)
					}
					engines[name] = uid + "@" + ev.Pod.NodeName
				case engine.PodGone:
					if had := engines[ev.Pod.Name]; !strings.HasPrefix(had, ev.Pod.UID+"@") {
						rt.Fatalf("gone %s/%s while the engine has %q", ev.Pod.Name, ev.Pod.UID, had)
					}
					delete(engines, ev.Pod.Name)
				}
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"create": func(rt *rapid.T) {
				name := names.Draw(rt, "name")
				next++
				uid := fmt.Sprint("u", next)
				truth[name] = uid + "@"
				pods.Add(kubetest.PendingPod(name, types.UID(uid))) // over another UID: its delete was missed
			},
			"bind": func(rt *rapid.T) {
				name := names.Draw(rt, "name")
				uid, on, ok := strings.Cut(truth[name], "@")
				if ok && on == "" {
					truth[name] = uid + "@n"
					pods.Update(kubetest.BoundPod(name, types.UID(uid), "n"))
				}
			},
			"delete": func(rt *rapid.T) {
				name := names.Draw(rt, "name")
				delete(truth, name)
				pods.Delete(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}})
			},
			"miss a delete, then list": func(rt *rapid.T) {
				delete(truth, names.Draw(rt, "name"))
				list()
			},
			"take": func(rt *rapid.T) { take(rapid.IntRange(1, 3).Draw(rt, "limit")) },
		})
		list()
		take(1000)
		if fmt.Sprint(truth) != fmt.Sprint(engines) {
			rt.Fatalf("the API server has %v, the engine %v", truth, engines)
		}
		if len(in.pods.rows) != len(truth) {
			rt.Fatalf("%d rows for %d pods", len(in.pods.rows), len(truth))
		}
		if _, bound := in.Known(); bound != strings.Count(fmt.Sprint(slices.Collect(mapValues(truth))), "@n") {
			rt.Fatalf("%d bound pods counted among %v", bound, truth)
		}
	})
}

func mapValues(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, v := range m {
			if !yield(v) {
				return
			}
		}
	}
}
