// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kumiki-scheduler/kumiki/internal/e2e/checker"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
	"github.com/kumiki-scheduler/kumiki/kube"
)

// succession is two schedulers, one of which leads, and what the checker saw.
type succession struct {
	t       *testing.T
	client  *kubernetes.Clientset
	history *checker.History
	both    [2]*process
	total   int // pods that were created
}

// leads finds the process that holds the lease, by what it said when it won.
func (s *succession) leads() (*process, string) {
	var found *process
	id := ""
	eventually(s.t, "a process leads", func() (bool, string) {
		if id = holder(s.t, s.client); id == "" {
			return false, "nobody"
		}
		won := regexp.MustCompile(regexp.QuoteMeta(id) + `"? what="became leader"`)
		i := slices.IndexFunc(s.both[:], func(p *process) bool { return won.MatchString(p.log.String()) })
		if i < 0 {
			return false, id
		}
		found = s.both[i]
		return true, ""
	})
	return found, id
}

var took = regexp.MustCompile(`Took over.* seconds=([0-9.e-]+) listedAgain=(\w+)`)

// tookOver counts and returns what a process said of its take-overs.
func (s *succession) tookOver() (said []string) {
	for _, p := range s.both {
		for _, m := range took.FindAllStringSubmatch(p.log.String(), -1) {
			said = append(said, m[1]+" s, listed again: "+m[2])
		}
	}
	return said
}

// burst creates n pods over about two seconds.
func (s *succession) burst(name string, n int) {
	for i := range n {
		create(s.t, s.client, pod(fmt.Sprintf("%s-%d", name, i), "100m"))
		time.Sleep(2 * time.Second / time.Duration(n))
	}
	s.total += n
}

// strike ends the leader in a burst, and tells when the first pod after that was bound by the next.
func (s *succession) strike(name string, how syscall.Signal) {
	old, id := s.leads()
	before, began := len(s.tookOver()), s.history.Bound()
	taken := make(chan [2]time.Duration, 1) // after the strike: until the lease has another holder, until a pod is bound again
	go func() {
		eventually(s.t, name+": the burst is under way", func() (bool, string) { return s.history.Bound() > began+20, "" })
		at := time.Now()
		old.signal(how)
		eventually(s.t, name+": another leads", func() (bool, string) {
			now := holder(s.t, s.client)
			return now != id && now != "", now
		})
		won, bound := time.Since(at), s.history.Bound()
		eventually(s.t, name+": the next leader binds", func() (bool, string) {
			return s.history.Bound() > bound || s.history.Bound() == began+150, ""
		})
		taken <- [2]time.Duration{won, time.Since(at)}
	}()
	s.burst(name, 150)
	after := <-taken
	eventually(s.t, name+": the next leader says so", func() (bool, string) { return len(s.tookOver()) > before, "" })
	s.t.Logf("%s: the lease had another holder after %.1f s, pods were bound again after %.1f s; take-overs so far: %v", name,
		after[0].Seconds(), after[1].Seconds(), s.tookOver())
	allBound(s.t, s.client, s.total)
}

// note writes an annotation on the lease, or takes it off.
func (s *succession) note(key string, value *string) {
	text := "null"
	if value != nil {
		text = fmt.Sprintf("%q", *value)
	}
	body := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, key, text)
	if _, err := s.client.CoordinationV1().Leases("kube-system").Patch(s.t.Context(), "kube-scheduler", types.MergePatchType, []byte(body), metav1.PatchOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// pausedBy waits until a leader other than the one named says that it is paused.
func (s *succession) pausedBy(other string) string {
	id := ""
	eventually(s.t, "the leader is paused", func() (bool, string) {
		lease, err := s.client.CoordinationV1().Leases("kube-system").Get(s.t.Context(), "kube-scheduler", metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		state := kube.PauseStateOf(lease)
		id = state.Holder
		return state.Paused && id != other, fmt.Sprintf("%v", lease.Annotations)
	})
	return id
}

// TestATakeOverLosesNothing kills the leader in a burst, then asks the next one to go in another; in a third,
// scheduling is paused and the leader dies in the pause. It would fail with a new leader that decides before it has
// listed, with one that does not read the pause before it decides, and with one that gives the lease back before
// its binds have ended.
func TestATakeOverLosesNothing(t *testing.T) {
	cluster := testcluster.Start(t, testcluster.Options{NodeSpec: tenNodes, NoHeartbeats: true})
	s := &succession{t: t, client: adminClient(t, cluster)}
	s.history = checker.Follow(t.Context(), s.client)
	for i := range s.both {
		s.both[i] = startProcess(t, cluster.SchedulerKubeconfig)
	}
	s.burst("first", 20)
	allBound(t, s.client, s.total)

	s.strike("killed", syscall.SIGKILL)
	s.strike("terminated", syscall.SIGTERM)

	leader, _ := s.leads()
	reason := "an upgrade"
	s.burst("before", 50)
	s.note(kube.PausedAnnotation, &reason)
	s.burst("pausing", 50)
	id := s.pausedBy("")
	bound := s.bound()
	s.burst("late", 20)
	leader.kill()
	s.pausedBy(id)
	if now := s.bound(); now != bound {
		t.Errorf("%d pods were bound in the pause", now-bound)
	}
	s.note(kube.PausedAnnotation, nil)
	allBound(t, s.client, s.total)
	eventually(t, "the checker has seen every bind", func() (bool, string) { return s.history.Bound() == s.total, "" })
	judge(t, s.client, s.history)
}

// bound counts the pods that have a node now.
func (s *succession) bound() (n int) {
	for _, p := range listPods(s.t, s.client) {
		if p.Spec.NodeName != "" {
			n++
		}
	}
	return n
}

// TestTheAPIServerChoosesWhoLeads runs two schedulers with the gate CoordinatedLeaderElection, here and in the API
// server: each stands, one is given the lease, and when it dies the other is. It would fail with a candidate that
// the API server does not take for one of this lease, and with rights beyond those of the role
// system:kube-scheduler.
func TestTheAPIServerChoosesWhoLeads(t *testing.T) {
	t.Setenv(coordinatedEnv, "true")
	cluster := testcluster.Start(t, testcluster.Options{NodeSpec: tenNodes, NoHeartbeats: true,
		FeatureGates: "CoordinatedLeaderElection=true", RuntimeConfig: "coordination.k8s.io/v1beta1=true"})
	s := &succession{t: t, client: adminClient(t, cluster)}
	s.history = checker.Follow(t.Context(), s.client)
	for i := range s.both {
		s.both[i] = startProcess(t, cluster.SchedulerKubeconfig)
	}
	s.burst("first", 20)
	allBound(t, s.client, s.total)
	lease, err := s.client.CoordinationV1().Leases("kube-system").Get(t.Context(), "kube-scheduler", metav1.GetOptions{})
	if err != nil || lease.Spec.Strategy == nil || *lease.Spec.Strategy != coordinationv1.OldestEmulationVersion {
		t.Errorf("the lease was not given by the API server: %+v, %v", lease.Spec, err)
	}
	eventually(t, "both stand", func() (bool, string) {
		candidates, err := s.client.CoordinationV1beta1().LeaseCandidates("kube-system").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		n := 0
		for _, c := range candidates.Items {
			if c.Spec.LeaseName == "kube-scheduler" {
				n++
			}
		}
		return n >= 2, fmt.Sprint(n)
	})
	s.strike("killed", syscall.SIGKILL)
	judge(t, s.client, s.history)
}
