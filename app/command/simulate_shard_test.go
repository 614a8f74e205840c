// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestSimulateShards: the shards of a comparison, joined in any order, give the output of one run byte for byte, with
// the assertions that failed; a missing, doubled or other shard is named.
func TestSimulateShards(t *testing.T) {
	path := write(t, "s.yaml", strings.Replace(small, "count: 3,", "count: 3, every: exponential 1m,", 1))
	line := []string{path, "--seeds", "1-5", "--profile", examples + "default.yaml", "--profile", examples + "packing.yaml",
		"--assert", "pods.pending == 0"}
	dir := t.TempDir()
	var parts []string
	for i := range 3 {
		to := filepath.Join(dir, fmt.Sprint(i, ".json"))
		code, out, errs := simulate(append(line, "--shard", fmt.Sprint(i, "/3"), "--to", to)...)
		if code != exitOK || out != "" {
			t.Fatalf("shard %d: exit %d, %s\n%s", i, code, errs, out)
		}
		parts = append([]string{to}, parts...)
	}
	for _, format := range []string{"table", "json", "csv", "html"} {
		code, whole, errs := simulate(append(line, "-o", format)...)
		mergedCode, merged, mergedErrs := simulate(append(append([]string{"merge"}, parts...), "-o", format)...)
		if code != exitNegative || mergedCode != code || merged != whole || !strings.HasSuffix(errs, mergedErrs) {
			t.Errorf("%s: exit %d and %d, %d and %d bytes\n%s\n%s", format, code, mergedCode, len(whole), len(merged), errs, mergedErrs)
		}
	}
	other := filepath.Join(dir, "other.json")
	if code, _, errs := simulate(append(line, "--vc", "x", "--shard", "0/3", "--to", other)...); code != exitOK {
		t.Fatal(errs)
	}
	for _, c := range []struct {
		files []string
		says  string
	}{
		{parts[1:], "shard 2 of 3 is missing"},
		{append(parts, parts[0]), "shard 2 is there twice"},
		{[]string{parts[0], parts[1], other}, "not of the same simulation"},
		{[]string{path}, "no shard of kumiki simulate --shard"},
		{[]string{path + "x"}, "no such file"},
	} {
		if code, _, errs := simulate(append([]string{"merge"}, c.files...)...); code != exitUsage || !strings.Contains(errs, c.says) {
			t.Errorf("%v: exit %d, want %s\n%s", c.files, code, c.says, errs)
		}
	}
}

// TestSimulateJob: the Job has as many shards, the files in a ConfigMap, and a command line that a pod understands.
func TestSimulateJob(t *testing.T) {
	path := write(t, "sweep.yaml", small)
	code, out, errs := simulate(path, "--seeds", "1-4", "--profile", examples+"packing.yaml", "--job", "2", "--image",
		"example.com/kumiki:1", "--claim", "results")
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, errs)
	}
	docs := strings.Split(strings.TrimPrefix(out, "---\n"), "---\n")
	var files v1.ConfigMap
	var job batchv1.Job
	if len(docs) != 2 || yaml.UnmarshalStrict([]byte(docs[0]), &files) != nil || yaml.UnmarshalStrict([]byte(docs[1]), &job) != nil {
		t.Fatalf("printed:\n%s", out)
	}
	pod := job.Spec.Template.Spec
	if *job.Spec.Completions != 2 || *job.Spec.CompletionMode != batchv1.IndexedCompletion || files.Name != "simulate-sweep" ||
		files.Data["sweep.yaml"] != small || files.Data["packing.yaml"] == "" || pod.Volumes[1].PersistentVolumeClaim.ClaimName != "results" {
		t.Errorf("printed:\n%s", out)
	}
	dir := t.TempDir()
	for i := range 2 { // as the pods would
		var line []string
		for _, a := range pod.Containers[0].Args[1:] {
			a = strings.ReplaceAll(a, "$(JOB_COMPLETION_INDEX)", fmt.Sprint(i))
			a = strings.Replace(a, "/input/sweep.yaml", path, 1)
			a = strings.Replace(a, "/input/packing.yaml", examples+"packing.yaml", 1)
			line = append(line, strings.Replace(a, "/output", dir, 1))
		}
		if code, _, errs := simulate(line...); code != exitOK {
			t.Fatalf("%v: exit %d, %s", line, code, errs)
		}
	}
	if code, out, errs := simulate("merge", dir+"/shard-0.json", dir+"/shard-1.json"); code != exitOK || !strings.Contains(out, "4 seeds") {
		t.Errorf("exit %d\n%s\n%s", code, out, errs)
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{path, "--shard", "2/2"}, "--shard must be I/N"},
		{[]string{path, "--shard", "x"}, "--shard must be I/N"},
		{[]string{path, "--to", "x"}, "--to needs --shard"},
		{[]string{path, "--job", "0"}, "--job must be from 1"},
		{[]string{path, "--job", "2"}, "--image IMAGE"},
		{[]string{path, "--job", "2", "--image", "i"}, "--claim NAME"},
		{[]string{"--job", "2", "--image", "i", "--claim", "c"}, "--job takes a scenario file"},
		{[]string{write(t, "s.yaml", small+"schedulers: [{name: a, config: d/c.yaml}]\n"), "--job", "2", "--image", "i", "--claim", "c"},
			"must be beside the scenario"},
	} {
		if code, _, errs := simulate(c.args...); code != exitUsage || !strings.Contains(errs, c.says) {
			t.Errorf("%v: exit %d, %s", c.args, code, errs)
		}
	}
}
