// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/sim/defrag"
)

// halves is four nodes of 4 cores, each with a pod of 1.
func halves(t *testing.T, kind string) string {
	t.Helper()
	c := &capturing{in: convert.NewIntake()}
	c.nodes(4, "4")
	for i := range 4 {
		c.pod(fmt.Sprint("web", i), fmt.Sprint("n", i), "1", kind)
	}
	return c.write(t)
}

// defragment runs kumiki defrag.
func defragment(t *testing.T, a ...string) (code int, out, errs string) {
	t.Helper()
	return command(t, append([]string{"kumiki", "defrag"}, a...)...)
}

// TestDefrag: a gang of three pods of 4 cores fits after the pods of three nodes have moved to the fourth.
func TestDefrag(t *testing.T) {
	from := halves(t, "ReplicaSet")
	code, out, errs := defragment(t, "--from", from, "--for", "3xcpu=4")
	if code != exitOK || !strings.Contains(out, "0 of 3xcpu=4 fit now, 1 after 3 moves") ||
		!strings.Contains(out, "fewer moves cannot do it") || strings.Count(out, "shop/web") != 3 {
		t.Errorf("exit %d\n%s\n%s", code, out, errs)
	}
	code, out, _ = defragment(t, "--from", from, "--for", "cpu=4", "--count", "2", "-o", "json")
	var p defrag.Plan
	if err := json.Unmarshal([]byte(out), &p); err != nil || code != exitOK || len(p.Moves) != 2 || p.AtLeast != 2 || p.Movable != 4 {
		t.Errorf("exit %d, %v: %+v", code, err, p)
	}
	if code, out, _ = defragment(t, "--from", from, "--for", "cpu=2"); code != exitOK || !strings.Contains(out, "4 of cpu=2 fit now, 5 after 1 moves") {
		t.Errorf("one more than now: exit %d\n%s", code, out)
	}
	for _, c := range []struct {
		from string
		args []string
		says string
	}{
		{from, []string{"--for", "4xcpu=4"}, "no plan was found"},
		{from, []string{"--for", "3xcpu=4", "--max-moves", "2"}, "2 moves cannot make enough capacity free"},
		{halves(t, ""), []string{"--for", "cpu=4"}, "no plan was found"},
	} {
		code, out, errs := defragment(t, append([]string{"--from", c.from}, c.args...)...)
		if code != exitNegative || !strings.Contains(errs, c.says) || !strings.Contains(out, "fit now") {
			t.Errorf("%v: exit %d\n%s\n%s", c.args, code, out, errs)
		}
	}
	if code, out, _ := defragment(t, "--from", halves(t, ""), "--for", "cpu=4"); !strings.Contains(out, "4 stay: has no controller") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// TestDefragBadInput: mistakes are named, with exit code 2.
func TestDefragBadInput(t *testing.T) {
	from := halves(t, "ReplicaSet")
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--from", from}, "--for 64xnvidia.com/gpu=8"},
		{[]string{"--for", "cpu=1"}, "--from FILE"},
		{[]string{"--from", from, "--for", "0xcpu=1"}, "a gang has from 1"},
		{[]string{"--from", from, "--for", "cpu"}, `"cpu" is not RESOURCE=AMOUNT`},
		{[]string{"--from", from, "--for", "cpu=lots"}, `"lots" is no amount`},
		{[]string{"--from", from, "--for", "cpu=-1"}, "must be more than 0"},
		{[]string{"--from", from, "--for", "cpu=1,cpu=2"}, "cpu is there twice"},
		{[]string{"--from", from, "--for", "cpu=1", "--count", "-1"}, "--count"},
		{[]string{"--from", from, "--for", "cpu=1", "--max-moves", "-1"}, "--max-moves"},
		{[]string{"--from", from + "x", "--for", "cpu=1"}, "no such file"},
		{[]string{"--from", write(t, "x", "kind: Pod"), "--for", "cpu=1"}, "not a recording"},
	} {
		if code, _, errs := defragment(t, c.args...); code != exitUsage || !strings.Contains(errs, c.says) {
			t.Errorf("%v: exit %d, %s", c.args, code, errs)
		}
	}
}
