// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kumiki-scheduler/kumiki/sim/report"
	"github.com/kumiki-scheduler/kumiki/sim/scenario"
)

// maxShards bounds the number of shards.
const maxShards = 10_000

// parseShard parses I/N.
func parseShard(text string) (index, of int, err error) {
	i, n, is := strings.Cut(text, "/")
	index, err1 := strconv.Atoi(i)
	of, err2 := strconv.Atoi(n)
	if !is || err1 != nil || err2 != nil || of < 1 || of > maxShards || index < 0 || index >= of {
		return 0, 0, fmt.Errorf("--shard must be I/N with I from 0 to N-1, such as 0/4; is %q", text)
	}
	return index, of, nil
}

// digest returns a digest of the files and values that the runs are made of.
func (s *simulation) digest(scenarios []string) (string, error) {
	h := sha256.New()
	for _, profile := range s.profiles {
		text, err := profileText(profile)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%d\n", len(text))
		h.Write(text)
	}
	files := slices.Concat(scenarios, strings.Split(s.openb, ","), []string{s.philly, s.change, s.model})
	for _, path := range files {
		if path == "" {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%d\n", len(text))
		h.Write(text)
	}
	fmt.Fprintf(h, "%q %q %q", s.from, s.vc, s.asserts)
	return hex.EncodeToString(h.Sum(nil)), nil
}

// writeShard writes one shard as JSON.
func (s *simulation) writeShard(shard *report.Shard) error {
	text, err := json.Marshal(shard)
	if err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	text = append(text, '\n')
	if s.to != "" {
		return os.WriteFile(s.to, text, 0o600)
	}
	_, err = s.io.Out.Write(text)
	return err
}

func newMergeCommand(io streams) *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:   "merge FILE...",
		Short: "Join the shards of a simulation",
		Long: `Join the results of kumiki simulate --shard. The output is that of a simulation without shards; exit 1 if
an assertion failed in one of them.`,
		Example: `  kumiki simulate scenario.yaml --seeds 1-100 --shard 0/2 > 0.json
  kumiki simulate scenario.yaml --seeds 1-100 --shard 1/2 > 1.json
  kumiki simulate merge 0.json 1.json`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, a []string) error {
			if !slices.Contains(report.Formats, format) {
				return usageError{fmt.Errorf("output must be one of %s", strings.Join(report.Formats, ", "))}
			}
			var shards []report.Shard
			for _, path := range a {
				text, err := os.ReadFile(path)
				if err != nil {
					return usageError{fmt.Errorf("merge: %w", err)}
				}
				var s report.Shard
				dec := json.NewDecoder(bytes.NewReader(text))
				dec.DisallowUnknownFields()
				if err := dec.Decode(&s); err != nil {
					return usageError{fmt.Errorf("merge %s: it is no shard of kumiki simulate --shard: %w", path, err)}
				}
				shards = append(shards, s)
			}
			out, err := report.Merge(shards)
			if err != nil {
				return usageError{fmt.Errorf("merge: %w", err)}
			}
			return finishReport(io, out, format)
		},
	}
	c.Flags().StringVarP(&format, "output", "o", "table", "output format: "+strings.Join(report.Formats, ", "))
	return c
}

// finishReport writes a report, and returns an error if an assertion failed.
func finishReport(io streams, out *report.Report, format string) error {
	if err := out.Write(io.Out, format); err != nil {
		return err
	}
	if n := len(out.Failed); n > 0 {
		return fmt.Errorf("simulate: %d assertions failed; the first, in %s with seed %d: %s", n, out.Failed[0].Profile,
			out.Failed[0].Seed, out.Failed[0].What)
	}
	return nil
}

// Where the files of a Job are.
const (
	jobInput  = "/input"
	jobOutput = "/output"
)

// maxConfigMap is how much a ConfigMap holds, less some for its metadata.
const maxConfigMap = 1<<20 - 4096

// printJob prints an Indexed Job that runs one shard in each pod, with its files.
func (s *simulation) printJob(a []string) error {
	if err := s.checkJob(a); err != nil {
		return usageError{err}
	}
	files, line, err := s.jobFiles(a[0])
	if err != nil {
		return usageError{err}
	}
	name := strings.TrimSuffix(filepath.Base(a[0]), filepath.Ext(a[0]))
	name = "simulate-" + strings.ToLower(strings.NewReplacer("_", "-", " ", "-").Replace(name))
	shards, mode := int32(s.job), batchv1.IndexedCompletion
	c := v1.Container{Name: "simulate", Image: s.image, Args: line, VolumeMounts: []v1.VolumeMount{
		{Name: "input", MountPath: jobInput, ReadOnly: true}, {Name: "output", MountPath: jobOutput}}}
	meta := metav1.ObjectMeta{Name: name}
	input := v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: name}}
	output := v1.PersistentVolumeClaimVolumeSource{ClaimName: s.claim}
	pod := v1.PodSpec{RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{c}, Volumes: []v1.Volume{
		{Name: "input", VolumeSource: v1.VolumeSource{ConfigMap: &input}},
		{Name: "output", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &output}}}}
	for _, o := range []any{
		&v1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: meta, Data: files},
		&batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: meta,
			Spec: batchv1.JobSpec{Completions: &shards, Parallelism: &shards, CompletionMode: &mode,
				Template: v1.PodTemplateSpec{Spec: pod}}},
	} {
		text, err := yaml.Marshal(o)
		if err != nil {
			return fmt.Errorf("writing YAML: %w", err)
		}
		fmt.Fprintf(s.io.Out, "---\n%s", text)
	}
	return nil
}

func (s *simulation) checkJob(a []string) error {
	switch {
	case s.job < 1 || s.job > maxShards:
		return fmt.Errorf("--job must be from 1 to %d, is %d", maxShards, s.job)
	case len(a) != 1 || s.from != "" || s.philly != "" || s.openb != "" || s.shard != "" || s.to != "":
		return errors.New("--job takes a scenario file, and no captures, traces, --shard or --to")
	case s.image == "":
		return errors.New("--job: name an image that has kumiki as its entry: --image IMAGE")
	case s.claim == "":
		return errors.New("--job: name the claim of the volume for results: --claim NAME")
	}
	return nil
}

// jobFiles returns the files of a Job by name, and the command line of its pods.
func (s *simulation) jobFiles(path string) (files map[string]string, line []string, err error) {
	f, err := readScenario(path)
	if err != nil {
		return nil, nil, err
	}
	files = map[string]string{}
	size := 0
	add := func(path string) (string, error) {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		name := filepath.Base(path)
		if have, is := files[name]; is && have != string(text) {
			return "", fmt.Errorf("--job: two files have the name %s", name)
		}
		files[name] = string(text)
		size += len(text)
		return jobInput + "/" + name, nil
	}
	at, err := add(path)
	if err != nil {
		return nil, nil, err
	}
	line = []string{"simulate", at, "--shard", "$(JOB_COMPLETION_INDEX)/" + strconv.Itoa(s.job),
		"--to", jobOutput + "/shard-$(JOB_COMPLETION_INDEX).json"}
	if s.seeds != "" {
		if _, err := scenario.Seeds(s.seeds); err != nil {
			return nil, nil, err
		}
		line = append(line, "--seeds", s.seeds)
	}
	for _, one := range s.asserts {
		line = append(line, "--assert", one)
	}
	for _, p := range s.profiles {
		if !isNamed(p) {
			if p, err = add(p); err != nil {
				return nil, nil, err
			}
		}
		line = append(line, "--profile", p)
	}
	if s.model != "" {
		if at, err = add(s.model); err != nil {
			return nil, nil, err
		}
		line = append(line, "--model", at)
	}
	for _, name := range f.Names() {
		if filepath.Base(name) != name {
			return nil, nil, fmt.Errorf("--job: %s must be beside the scenario", name)
		}
		if _, err := add(filepath.Join(filepath.Dir(path), name)); err != nil {
			return nil, nil, err
		}
	}
	if size > maxConfigMap {
		return nil, nil, fmt.Errorf("--job: the files have %d bytes, and a ConfigMap holds %d", size, maxConfigMap)
	}
	return files, line, nil
}
