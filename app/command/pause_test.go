// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/app/command/text"
	"github.com/kumiki-scheduler/kumiki/kube"
)

// pausable is an API server with one lease and a leader, or none.
type pausable struct {
	mu        sync.Mutex
	lease     *coordinationv1.Lease
	conflicts int // how many patches are refused first
	refuse    int // the code with which all patches are refused; 0 for none
	reads     int
	// leader acts before each read after the first: it renews the lease, or not. n counts its turns.
	leader func(lease *coordinationv1.Lease, n int)
}

func newPausable(holder string) *pausable {
	p := &pausable{lease: &coordinationv1.Lease{
		TypeMeta:   metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-scheduler", ResourceVersion: "1"},
		Spec:       coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: time.Unix(1000, 0)}},
	}}
	if holder != "" {
		p.lease.Spec.HolderIdentity = &holder
	}
	return p
}

// renew is what every leader does.
func renew(lease *coordinationv1.Lease, n int) {
	lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Unix(2000+int64(n), 0)}
	lease.ResourceVersion = fmt.Sprint(100 + n)
}

// kumiki answers a pause: with something in flight first.
func kumiki(lease *coordinationv1.Lease, n int) {
	renew(lease, n)
	delete(lease.Annotations, kube.PauseStateAnnotation)
	if kube.PauseOf(lease) != nil {
		state, _ := json.Marshal(kube.PauseState{Paused: n > 1, InFlight: max(0, 2-n),
			Holder: *lease.Spec.HolderIdentity})
		lease.Annotations[kube.PauseStateAnnotation] = string(state)
	}
}

func (p *pausable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.HasSuffix(r.URL.Path, "/selfsubjectreviews"):
		fmt.Fprint(w, `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview","status":{"userInfo":{"username":"ann"}}}`)
		return
	case !strings.HasSuffix(r.URL.Path, "/namespaces/kube-system/leases/kube-scheduler") || p.lease == nil:
		failRequest(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	case r.Method == http.MethodPatch && p.refuse != 0:
		failRequest(w, p.refuse, metav1.StatusReasonForbidden)
		return
	case r.Method == http.MethodPatch:
		var patch struct {
			Metadata struct {
				ResourceVersion string
				Annotations     map[string]*string
			}
		}
		if json.NewDecoder(r.Body).Decode(&patch) != nil ||
			patch.Metadata.ResourceVersion != p.lease.ResourceVersion || p.conflicts > 0 {
			p.conflicts--
			failRequest(w, http.StatusConflict, metav1.StatusReasonConflict)
			return
		}
		for key, value := range patch.Metadata.Annotations {
			if p.lease.Annotations == nil {
				p.lease.Annotations = map[string]string{}
			}
			if delete(p.lease.Annotations, key); value != nil {
				p.lease.Annotations[key] = *value
			}
		}
		p.lease.ResourceVersion += "0"
		p.reads = 0
	default:
		if p.reads++; p.leader != nil && p.lease.Annotations != nil {
			p.leader(p.lease, p.reads)
		}
	}
	json.NewEncoder(w).Encode(p.lease)
}

// do runs a command against the API server.
func (p *pausable) do(t *testing.T, a ...string) (stdout, stderr string, code int) {
	t.Helper()
	server := httptest.NewServer(p)
	defer server.Close()
	var out, complaints bytes.Buffer
	code = Run(t.Context(), append(append([]string{"kumiki"}, a...), "--kubeconfig", kubeconfigAt(t, server.URL)),
		strings.NewReader(""), &out, &complaints)
	return out.String(), complaints.String(), code
}

// TestPauseWaitsForTheAnswer and resume too. It would fail with a command that takes an answer of before its own
// write for one.
func TestPauseWaitsForTheAnswer(t *testing.T) {
	p := newPausable("host_1")
	p.leader, p.conflicts = kumiki, 2
	// of an earlier pause
	p.lease.Annotations = map[string]string{kube.PauseStateAnnotation: `{"paused":true,"holder":"host_1"}`}
	out, complaints, code := p.do(t, "pause", "--reason", "storage upgrade", "-o", "json")
	var got text.Pause
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 || complaints != "" {
		t.Fatalf("exit %d, %v, stdout %s, stderr %s", code, err, out, complaints)
	}
	if got.State != "paused" || got.Holder != "host_1" || got.Reason != "storage upgrade" || got.By != "ann" ||
		got.Since == nil || got.Lease != "kube-system/kube-scheduler" {
		t.Errorf("answer %s", out)
	}
	if p.reads < 2 {
		t.Errorf("the lease was read %d times after the write: the answer came with the second", p.reads)
	}

	first := kube.PauseOf(p.lease).Since
	if out, complaints, code = p.do(t, "pause"); code != 0 || !strings.Contains(out, "storage upgrade") ||
		strings.Count(out, "\n") != 2 {
		t.Errorf("paused again: exit %d, stdout %s, stderr %s", code, out, complaints)
	}
	if again := kube.PauseOf(p.lease); !again.Since.Equal(first) || again.Reason != "storage upgrade" {
		t.Errorf("a second pause is %+v, want what the first said", again)
	}

	out, complaints, code = p.do(t, "resume")
	if code != 0 || !strings.Contains(out, "scheduling") || len(p.lease.Annotations) != 0 {
		t.Errorf("resumed: exit %d, stdout %s, stderr %s, annotations %v", code, out, complaints, p.lease.Annotations)
	}
}

// TestNoAnswerSaysWhatToLookAt: each cause of a missing confirmation has its own sentence, and exit code 1.
func TestNoAnswerSaysWhatToLookAt(t *testing.T) {
	for name, tt := range map[string]struct {
		command, holder string
		change          func(*pausable)
		want            string
	}{
		"no leader": {"pause", "", func(*pausable) {}, "no process holds lease kube-system/kube-scheduler"},
		"it is dead": {"pause", "host_1", func(*pausable) {},
			"host_1 holds lease kube-system/kube-scheduler and has not renewed it"},
		"upstream": {"pause", "host_1", func(p *pausable) { p.leader = renew },
			"host_1 leads and does not answer a pause: it is kube-scheduler"},
		"in flight": {"pause", "host_1", func(p *pausable) {
			p.leader = func(lease *coordinationv1.Lease, n int) {
				renew(lease, n)
				lease.Annotations[kube.PauseStateAnnotation] = `{"holder":"host_1","inFlight":7}`
			}
		}, "7 earlier ones have no outcome"},
		"taken off": {"pause", "host_1", func(p *pausable) {
			p.leader = func(lease *coordinationv1.Lease, _ int) { lease.Annotations = map[string]string{} }
		}, "taken off the lease meanwhile"},
		"paused again": {"resume", "host_1", func(p *pausable) {
			p.lease.Annotations = map[string]string{}
			p.leader = func(lease *coordinationv1.Lease, _ int) { lease.Annotations[kube.PausedAnnotation] = "mine" }
		}, "paused again meanwhile"},
		"dead, resumed": {"resume", "host_1", func(*pausable) {}, "has not renewed it since"},
		"no lease": {"pause", "", func(p *pausable) { p.lease = nil },
			"there is no lease kube-system/kube-scheduler"},
		"forbidden": {"pause", "host_1", func(p *pausable) { p.refuse = http.StatusForbidden },
			"grant patch on leases.coordination.k8s.io"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPausable(tt.holder)
			tt.change(p)
			_, complaints, code := p.do(t, tt.command, "--timeout", "300ms")
			if code != 1 || !strings.Contains(complaints, tt.want) {
				t.Errorf("exit %d, stderr %q; want 1 and %q", code, complaints, tt.want)
			}
		})
	}
}

// TestPauseWithoutWaiting writes the request and does not wait; ending a pause needs no leader.
func TestPauseWithoutWaiting(t *testing.T) {
	p := newPausable("")
	out, _, code := p.do(t, "pause", "--timeout", "0", "--reason", "before the install")
	if code != 0 || !strings.Contains(out, "asked") || kube.PauseOf(p.lease) == nil {
		t.Errorf("exit %d, stdout %s", code, out)
	}
	if out, _, code = p.do(t, "resume"); code != 0 || kube.PauseOf(p.lease) != nil {
		t.Errorf("resumed: exit %d, stdout %s", code, out)
	}
	if _, complaints, code := p.do(t, "pause", "--reason", strings.Repeat("x", maxReason+1)); code != exitUsage {
		t.Errorf("a reason without end: exit %d, %s", code, complaints)
	}
}
