// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/kumiki-scheduler/kumiki/app/command/text"
)

// formats are the values of -o.
var formats = []string{"table", "wide", "json", "yaml"}

// output is the flag -o.
type output struct{ format string }

func (o *output) addFlag(c *cobra.Command) {
	o.format = "table"
	c.Flags().VarP(o, "output", "o", "output format: "+strings.Join(formats, ", "))
	c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// String, Set and Type make it a flag.
func (o *output) String() string { return o.format }

// Set checks and takes a value.
func (o *output) Set(value string) error {
	if !slices.Contains(formats, value) {
		return fmt.Errorf("must be one of %s", strings.Join(formats, ", "))
	}
	o.format = value
	return nil
}

// Type names the kind of value in help.
func (o *output) Type() string { return "format" }

// print writes data in the chosen format; human writes the two formats for display.
func (o *output) print(w io.Writer, data any, human func(wide bool) error) error {
	switch o.format {
	case "json":
		encoded, err := json.MarshalIndent(data, "", "    ")
		if err != nil {
			return fmt.Errorf("writing JSON: %w", err)
		}
		_, err = fmt.Fprintf(w, "%s\n", text.EscapeJSON(encoded))
		return err
	case "yaml":
		encoded, err := yaml.Marshal(data)
		if err != nil {
			return fmt.Errorf("writing YAML: %w", err)
		}
		if !text.Prints(encoded) { // JSON is YAML, and can escape what is not printed
			return (&output{format: "json"}).print(w, data, human)
		}
		_, err = w.Write(encoded)
		return err
	}
	return human(o.format == "wide")
}
