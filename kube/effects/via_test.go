// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/message"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
	"github.com/kumiki-scheduler/kumiki/record"
)

// TestABindByForeignCodeIsWhatTheAPIServerHas: foreign code may bind and say so, bind later than it says, say so and
// not do it, do it and not say so, or leave it to us. Catches a binder that believes it.
func TestABindByForeignCodeIsWhatTheAPIServerHas(t *testing.T) {
	broken := errors.New("status 500")
	for _, c := range []struct {
		name    string
		after   time.Duration // until the pod is bound; negative: never
		node    string        // where it is bound
		answer  error
		want    engine.BindOutcome
		message string
	}{
		{"bound", 0, "a", nil, engine.Bound, ""},
		{"bound a little later", 2 * time.Second, "a", nil, engine.Bound, ""},
		{"said so, and did not", -1, "", nil, engine.BindFailed, "it answered that the pod is bound, and the pod is not"},
		{"bound elsewhere", 0, "b", nil, engine.BoundElsewhere, "by http://x"},
		{"failed", -1, "", broken, engine.BindFailed, "status 500"},
		{"the answer was lost", 0, "a", broken, engine.Bound, ""},
		{"rejected", -1, "", message.Rejected{Plugin: "A", Text: "not here"}, engine.BindRejected, "not here"},
		{"rejected, and bound", 0, "a", message.Rejected{Plugin: "A", Text: "not here"}, engine.Bound, ""},
		{"left to the API server", -1, "", ErrUseAPI, engine.Bound, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pod := kubetest.PendingPod("p", "u1")
				api := kubetest.NewAPIServer(pod)
				var answers []engine.BindDone
				m, _ := counted()
				b := NewBinder(t.Context(), api, 0, m, func(done engine.BindDone) { answers = append(answers, done) })
				asked := 0
				b.via = func(_ context.Context, name string, p record.PodRef, node string) error {
					asked++
					if name != "http://x" || p != kubetest.Ref(pod) || node != "a" {
						t.Errorf("asked %s to bind %v to %s", name, p, node)
					}
					if c.after >= 0 {
						go func() {
							time.Sleep(c.after)
							err := api.Bind(&v1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}, Target: v1.ObjectReference{Name: c.node}})
							if err != nil {
								t.Error(err)
							}
						}()
						synctest.Wait()
					}
					return c.answer
				}
				b.Bind(engine.Bind{Pod: kubetest.Ref(pod), Node: "a", Via: "http://x"})
				time.Sleep(time.Minute)
				synctest.Wait()
				b.Drain(t.Context())
				if len(answers) != 1 || asked != 1 {
					t.Fatalf("%d answers and %d questions, want one of each", len(answers), asked)
				}
				if got := answers[0]; got.Outcome != c.want || !strings.Contains(got.Message, c.message) || (c.message == "") != (got.Message == "") {
					t.Errorf("got %+v, want outcome %d with %q", got, c.want, c.message)
				}
			})
		})
	}
}
