// Command pulumi-resource-kubernetes serves Pulumi's Kubernetes provider from its published Go module.
//
// The module's own main embeds two generated files which the module doesn't ship under the names it embeds.
// They are the same data as schema.json and terraform-mapping.json beside that main; the builder
// (tools/builder.py) copies both from the module cache into the build folder, next to this file.
package main

import (
	_ "embed"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/version"
)

//go:embed schema.json
var schema []byte

//go:embed terraform-mapping.json
var mapping []byte

func main() {
	provider.Serve("kubernetes", version.Version, schema, mapping)
}
