// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/app/command/tape"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
)

// captured writes a snapshot of one node and a waiting pod.
func captured(t *testing.T) string {
	t.Helper()
	in := convert.NewIntake()
	big := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "big", UID: "u-1"},
		Spec: v1.PodSpec{SchedulerName: "default-scheduler", Containers: []v1.Container{{
			Env:       []v1.EnvVar{{Name: "PASSWORD", Value: "hunter2"}},
			Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse("3")}}}}}}
	file := filepath.Join(t.TempDir(), "snapshot")
	nodes, pods, err := tape.Keep(file, app.Plugins{}, config.Default(), time.Unix(1000, 0), []engine.Event{
		engine.NodeSet{Node: in.Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"},
			Status: v1.NodeStatus{Allocatable: v1.ResourceList{"cpu": resource.MustParse("4"),
				"memory": resource.MustParse("4Gi"), "pods": resource.MustParse("10")}}})},
		engine.PodSet{Pod: in.Pod(big)}, engine.Synced{},
	})
	if err != nil || nodes != 1 || pods != 1 {
		t.Fatalf("%d nodes, %d pods, %v", nodes, pods, err)
	}
	return file
}

// why runs the command and returns what it prints.
func why(t *testing.T, a ...string) (stdout string, code int) {
	t.Helper()
	var out, complaints bytes.Buffer
	code = Run(t.Context(), append([]string{"kumiki", "why"}, a...), strings.NewReader(""), &out, &complaints)
	return out.String() + complaints.String(), code
}

// TestWhyFromASnapshot: a snapshot suffices on a machine without the cluster, with the verdict of the filters and
// without a position in a queue, because no scheduler runs. It holds no environment values.
func TestWhyFromASnapshot(t *testing.T) {
	file := captured(t)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "hunter2") || strings.Contains(string(text), "PASSWORD") {
		t.Error("the snapshot contains environment values")
	}
	got, code := why(t, "pod/big", "-n", "shop", "--from", file)
	if code != 0 || !strings.Contains(got, "pod shop/big: Pending, 1/1 nodes fit") ||
		strings.Contains(got, "next in line") {
		t.Errorf("exit %d:\n%s", code, got)
	}
	if got, code = why(t, "node/n1", "--from", file); code != 0 || !strings.Contains(got, "n1") {
		t.Errorf("exit %d:\n%s", code, got)
	}
	if got, code = why(t, "pod/none", "-n", "shop", "--from", file); code != 1 ||
		!strings.Contains(got, "there is no pod shop/none") {
		t.Errorf("exit %d:\n%s", code, got)
	}
	if got, code = why(t, "pod/big", "--from", file+".not"); code != 1 ||
		!strings.Contains(got, "reading the snapshot") {
		t.Errorf("exit %d:\n%s", code, got)
	}
	if _, _, err := tape.Keep(file, app.Plugins{}, config.Default(), time.Unix(1, 0), nil); err == nil {
		t.Error("an existing snapshot was overwritten")
	}
}

// TestWhatIfFromASnapshot: conditions are supposed one after the other; mistakes in them end with the exit code of
// usage, things that are not there with that of a negative answer.
func TestWhatIfFromASnapshot(t *testing.T) {
	file := captured(t)
	got, code := why(t, "pod/big", "-n", "shop", "--from", file, "--if", "drain node/n1", "--if",
		"add-nodes 2 like node/n1")
	for _, part := range []string{"pod shop/big: would be placed on n1-if-", "now it fits\n", "n1-if-1, n1-if-2",
		"Then   2 of 3 nodes", "Nothing was changed."} {
		if code != 0 || !strings.Contains(got, part) {
			t.Fatalf("exit %d, no %q in\n%s", code, part, got)
		}
	}
	if got, code = why(t, "pod/big", "-n", "shop", "--from", file, "--if", "cordon n1", "-o", "yaml"); code != 0 ||
		!strings.Contains(got, "outcome: fits-not") {
		t.Errorf("exit %d:\n%s", code, got)
	}
	for name, tt := range map[string]struct {
		about, condition string
		code             int
		want             string
	}{
		"typing mistake": {"pod/big", "drian node/n1", 2, "want one of: delete pod/NAME"},
		"no name":        {"pod/big", "drain", 2, "want drain node/NAME"},
		"no such node":   {"pod/big", "drain node/n9", 1, `condition "drain node/n9": there is no node n9`},
		"no such pod":    {"pod/other", "drain node/n1", 1, "there is no pod shop/other"},
		"no such gang":   {"gang/other", "drain node/n1", 1, "there is no gang shop/other"},
		"about a node":   {"node/n1", "drain node/n1", 2, "--if is about a pod or a gang"},
		"of another":     {"pod/big", "delete pod/web/front", 1, "there is no pod web/front"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, code := why(t, tt.about, "-n", "shop", "--from", file, "--if", tt.condition); code != tt.code ||
				!strings.Contains(got, tt.want) {
				t.Errorf("exit %d, want %d and %q:\n%s", code, tt.code, tt.want, got)
			}
		})
	}
}
