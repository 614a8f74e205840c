// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestThePatchOfTheRunbookRecordsToAVolume applies the patch that docs/runbook.md shows: the root file system is
// read-only, so --record names a file below a volume that the patch mounts.
func TestThePatchOfTheRunbookRecordsToAVolume(t *testing.T) {
	page, err := os.ReadFile("../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "--type json --patch '\n")
	patch, _, found := strings.Cut(rest, "'\n```")
	if !found {
		t.Fatal("docs/runbook.md shows no patch that records")
	}
	for _, name := range []string{"canary", "replace"} {
		d := patched(t, name, patch)
		c := d.Spec.Template.Spec.Containers[0]
		if *c.SecurityContext.ReadOnlyRootFilesystem != true {
			t.Fatalf("%s: the root file system can be written; the runbook says that it cannot", name)
		}
		file := ""
		for _, arg := range c.Args {
			if path, ok := strings.CutPrefix(arg, "--record="); ok {
				file = path
			}
		}
		mounted := ""
		for _, m := range c.VolumeMounts {
			if m.MountPath == filepath.Dir(file) && !m.ReadOnly {
				mounted = m.Name
			}
		}
		writable := slices.ContainsFunc(d.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool {
			return v.Name == mounted && v.EmptyDir != nil
		})
		if file == "" || mounted == "" || !writable {
			t.Errorf("%s: --record=%q is on the volume %q; a writable volume: %v", name, file, mounted, writable)
		}
	}
}

// patched returns the Deployment of an overlay with a JSON patch.
func patched(t *testing.T, name, patch string) appsv1.Deployment {
	t.Helper()
	dir := t.TempDir()
	here, err := filepath.Abs("kustomize/" + name)
	if err != nil {
		t.Fatal(err)
	}
	base, err := filepath.Rel(dir, here)
	if err != nil {
		t.Fatal(err)
	}
	text := "resources: [" + base + "]\npatches:\n- target: {kind: Deployment}\n  patch: |\n    " +
		strings.ReplaceAll(strings.TrimSpace(patch), "\n", "\n    ") + "\n"
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return only[appsv1.Deployment](t, kustomized(t, dir), "Deployment")
}
