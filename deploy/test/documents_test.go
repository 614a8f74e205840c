// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/distribution/reference"
	"helm.sh/helm/v3/pkg/strvals"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// fenced are the blocks of commands in a page, without those that a walkthrough runs on a local cluster (console).
var fenced = regexp.MustCompile("(?ms)^```(text|sh|)\n(.*?)^```$")

// blocks returns the blocks of commands, page by page, that contain a text.
func blocks(t *testing.T, containing string) (found []string) {
	t.Helper()
	for _, pattern := range []string{"README.md", "deploy/README.md", "docs/*.md", "docs/*/*.md"} {
		pages, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			raw, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range fenced.FindAllStringSubmatch(string(raw), -1) {
				if strings.Contains(m[2], containing) {
					found = append(found, m[2])
				}
			}
		}
	}
	return found
}

// TestDocumentedHelmCommandsAreAccepted renders the chart with what each `helm install` and `helm upgrade` in the documents sets.
// It catches a value that was renamed in the chart alone. The last element of the chart's path is kumiki.
func TestDocumentedHelmCommandsAreAccepted(t *testing.T) {
	count := 0
	for _, block := range blocks(t, "helm ") {
		for line := range strings.Lines(strings.ReplaceAll(block, "\\\n", "")) {
			args := strings.Fields(strings.ReplaceAll(line, "'", ""))
			if len(args) < 4 || args[0] != "helm" || (args[1] != "install" && args[1] != "upgrade") || strings.HasPrefix(line, "$") {
				continue
			}
			if !slices.ContainsFunc(args, func(a string) bool { return strings.HasSuffix(a, "/kumiki") }) {
				continue // the chart of another project
			}
			values := map[string]any{}
			for i, a := range args {
				if a != "--set" {
					continue
				}
				if err := strvals.ParseInto(args[i+1], values); err != nil {
					t.Fatalf("%s: %v", line, err)
				}
			}
			name := args[2]
			if strings.HasPrefix(name, "-") {
				name = args[3]
			}
			if _, err := renderChart(t, name, asText(t, values)); err != nil {
				t.Errorf("%s: %v", line, err)
			}
			count++
		}
	}
	if count < 8 {
		t.Errorf("only %d commands were found", count)
	}
}

// TestOverlaysPullNoImage: without an image of the user's, an overlay names one that a kubelet rejects before it asks a registry.
func TestOverlaysPullNoImage(t *testing.T) {
	for _, overlay := range []string{"base", "shadow"} {
		raw, err := os.ReadFile("../kustomize/" + overlay + "/deployment.yaml")
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`(?m)^\s+image: (\S+)$`).FindAllStringSubmatch(string(raw), -1)
		if len(m) != 1 {
			t.Fatalf("%s: %d images", overlay, len(m))
		}
		if named, err := reference.ParseNormalizedNamed(m[0][1]); err == nil {
			t.Errorf("%s would pull %s", overlay, named)
		}
	}
}

// TestClusterAppliesDocuments runs each block of the documents with `kubectl apply -k` as typed, with kubectl's own code on a
// real API server. The Deployments then name the image that the document names. It catches an overlay that the documents apply
// without an image, and a path that does not exist.
func TestClusterAppliesDocuments(t *testing.T) {
	binary, err := testcluster.Build(t.Context(), testcluster.Matched, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	c := startCluster(t, 4)
	root := t.TempDir()
	if err := os.CopyFS(filepath.Join(root, "deploy"), os.DirFS("..")); err != nil {
		t.Fatal(err)
	}
	// kubectl for everything but what waits for pods, which do not run here, and commands of other clusters.
	shim := fmt.Sprintf("#!/bin/sh\ncase \"$1 $2\" in 'apply -k') exec %s kubectl --kubeconfig=%s \"$@\";; *) echo \"not run: kubectl $*\";; esac\n", binary, c.Kubeconfig)
	bin := filepath.Join(root, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"kubectl": shim, "helm": "#!/bin/sh\n", "make": "#!/bin/sh\n", "kumiki": "#!/bin/sh\n"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	all := blocks(t, "kubectl apply -k")
	if len(all) < 4 {
		t.Fatalf("only %d blocks were found", len(all))
	}
	for _, block := range all {
		if strings.Contains(block, "mkdir my-kumiki") { // each page starts anew
			if err := os.RemoveAll(filepath.Join(root, "my-kumiki")); err != nil {
				t.Fatal(err)
			}
		}
		run := exec.CommandContext(t.Context(), "sh", "-e", "-c", block)
		run.Dir, run.Env = root, append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		if out, err := run.CombinedOutput(); err != nil {
			t.Errorf("%v from\n%s\n%s", err, block, out)
		}
		c.imagesAreValid(block)
	}
}

func (c *cluster) imagesAreValid(block string) {
	c.Helper()
	made, err := c.client.AppsV1().Deployments(namespace).List(c.Context(), metav1.ListOptions{})
	if err != nil {
		c.Fatal(err)
	}
	if len(made.Items) == 0 {
		c.Errorf("no Deployment after\n%s", block)
	}
	for _, d := range made.Items {
		if got := d.Spec.Template.Spec.Containers[0].Image; got != image {
			c.Errorf("Deployment %s has the image %s after\n%s", d.Name, got, block)
		}
		if err := c.client.AppsV1().Deployments(namespace).Delete(c.Context(), d.Name, metav1.DeleteOptions{}); err != nil {
			c.Fatal(err)
		}
	}
}
