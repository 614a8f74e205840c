// SPDX-License-Identifier: Apache-2.0

// Command architecture writes the diagram of packages into docs/architecture.md.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/kumiki-scheduler/kumiki/internal/lint"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	tree, err := lint.Load()
	if err != nil {
		return err
	}
	file := filepath.Join(tree.Root, filepath.FromSlash(lint.ArchitecturePage))
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	written, err := lint.WithDiagram(string(page), lint.Diagram(tree))
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(written), 0o644)
}
