// SPDX-License-Identifier: Apache-2.0

package ecosystem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Root finds the directory of the repository above the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no directory above this one is the repository")
		}
		dir = parent
	}
}

// Build builds the component's program and returns its path.
func (c *Component) Build(ctx context.Context, root string) (string, error) {
	binary := filepath.Join(root, "bin", "ecosystem", c.Name)
	_, err := c.run(ctx, root, "build", "-buildvcs=false", "-o", binary, c.Package)
	return binary, err
}

// moduleDir returns the directory of the component's module.
func (c *Component) moduleDir(ctx context.Context, root string) (string, error) {
	// Without its package, go list knows the module only if it has been fetched.
	if _, err := c.run(ctx, root, "mod", "download", c.Module); err != nil {
		return "", err
	}
	return c.run(ctx, root, "list", "-m", "-f", "{{.Dir}}", c.Module)
}

// run runs the go command in the component's module.
func (c *Component) run(ctx context.Context, root string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(root, "ecosystem", c.Name)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: go %s: %w\n%s", c.Name, strings.Join(args, " "), err, &stderr)
	}
	return strings.TrimSpace(string(out)), nil
}
