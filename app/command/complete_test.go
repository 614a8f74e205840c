// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestGangsAreCompleted: two pods of one pod group, one of an annotated gang, and one of none.
func TestGangsAreCompleted(t *testing.T) {
	train := "train"
	grouped := v1.PodSpec{SchedulingGroup: &v1.PodSchedulingGroup{PodGroupName: &train}}
	list := v1.PodList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"},
		Items: []v1.Pod{
			{ObjectMeta: metav1.ObjectMeta{Name: "train-0"}, Spec: grouped},
			{ObjectMeta: metav1.ObjectMeta{Name: "train-1"}, Spec: grouped},
			{ObjectMeta: metav1.ObjectMeta{Name: "tune-0", Annotations: map[string]string{"pod_group": "tune"}}},
			{ObjectMeta: metav1.ObjectMeta{Name: "web-0"}},
		},
	}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/ml/pods" {
			failRequest(w, http.StatusNotFound, metav1.StatusReasonNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(list); err != nil {
			t.Error(err)
		}
	}))
	defer api.Close()
	for typed, want := range map[string]string{
		"gang/": "gang/train gang/tune :4",
		"gang ": "train tune :4",
		"pod/":  "pod/train-0 pod/train-1 pod/tune-0 pod/web-0 :4",
	} {
		line := []string{"kumiki", "__complete", "why", "--kubeconfig", kubeconfigAt(t, api.URL), "-n", "ml"}
		code, out, errs := command(t, append(line, strings.Split(typed, " ")...)...)
		if got := strings.Join(strings.Fields(out), " "); code != 0 || got != want {
			t.Errorf("%s: code %d, got %q, want %q\n%s", typed, code, got, want, errs)
		}
	}
}
