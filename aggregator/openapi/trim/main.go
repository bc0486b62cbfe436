// Command trim takes out of a file that openapi-gen wrote the definitions of
// some packages' types to which no definition of the other packages leads.
//
//	trim FILE PACKAGE...
package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"slices"
	"strconv"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: trim FILE PACKAGE...")
		os.Exit(2)
	}
	if err := trim(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "trim %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

func trim(path string, packages []string) error {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
	if err != nil {
		return err
	}
	aliases, trimmed := imports(file, packages)
	definitions := definitions(file)
	if len(definitions) == 0 {
		return fmt.Errorf("it has no function GetOpenAPIDefinitions that returns a map")
	}
	functions := map[string]*ast.FuncDecl{}
	for _, declaration := range file.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok {
			functions[function.Name.Name] = function
		}
	}
	byModel := map[string]*ast.KeyValueExpr{}
	for _, definition := range definitions {
		byModel[model(definition.Key)] = definition
	}

	keep := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		definition := byModel[name]
		if definition == nil || keep[name] {
			return
		}
		keep[name] = true
		ast.Inspect(functions[function(definition)], func(node ast.Node) bool {
			if call, ok := node.(*ast.CallExpr); ok {
				visit(model(call))
			}
			return true
		})
	}
	for name, definition := range byModel {
		if !trimmed[alias(definition.Key)] {
			visit(name)
		}
	}
	return write(path, files, file, aliases, func(definition *ast.KeyValueExpr) bool {
		return keep[model(definition.Key)]
	})
}

// imports returns the names under which packages are imported, and those among
// them whose definitions may go.
func imports(file *ast.File, packages []string) (aliases, trimmed map[string]bool) {
	aliases, trimmed = map[string]bool{}, map[string]bool{}
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil || spec.Name == nil {
			continue
		}
		aliases[spec.Name.Name] = true
		trimmed[spec.Name.Name] = slices.Contains(packages, path)
	}
	return aliases, trimmed
}

// definitions returns the entries of the map that GetOpenAPIDefinitions makes.
func definitions(file *ast.File) []*ast.KeyValueExpr {
	var entries []*ast.KeyValueExpr
	ast.Inspect(file, func(node ast.Node) bool {
		declaration, ok := node.(*ast.FuncDecl)
		if !ok {
			return true
		}
		if declaration.Name.Name == "GetOpenAPIDefinitions" {
			for _, element := range definitionMap(declaration).Elts {
				entries = append(entries, element.(*ast.KeyValueExpr))
			}
		}
		return false
	})
	return entries
}

func definitionMap(declaration *ast.FuncDecl) *ast.CompositeLit {
	return declaration.Body.List[0].(*ast.ReturnStmt).Results[0].(*ast.CompositeLit)
}

// model returns "alias.Type" for alias.Type{}.OpenAPIModelName(), else "".
func model(expression ast.Expr) string {
	if selector := modelType(expression); selector != nil {
		return selector.X.(*ast.Ident).Name + "." + selector.Sel.Name
	}
	return ""
}

func alias(expression ast.Expr) string {
	return modelType(expression).X.(*ast.Ident).Name
}

func modelType(expression ast.Expr) *ast.SelectorExpr {
	call, ok := expression.(*ast.CallExpr)
	if !ok {
		return nil
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || method.Sel.Name != "OpenAPIModelName" {
		return nil
	}
	return method.X.(*ast.CompositeLit).Type.(*ast.SelectorExpr)
}

// function returns the name of the function that makes a definition.
func function(definition *ast.KeyValueExpr) string {
	return definition.Value.(*ast.CallExpr).Fun.(*ast.Ident).Name
}

// write prints the file without the definitions that are not kept, their
// functions, and the imports that only those needed.
func write(path string, files *token.FileSet, file *ast.File, aliases map[string]bool, keep func(*ast.KeyValueExpr) bool) error {
	keptFunctions := map[string]bool{"GetOpenAPIDefinitions": true}
	kept := map[ast.Expr]bool{}
	for _, definition := range definitions(file) {
		if keep(definition) {
			kept[definition] = true
			keptFunctions[function(definition)] = true
		}
	}
	var declarations []ast.Decl
	for _, declaration := range file.Decls {
		if f, ok := declaration.(*ast.FuncDecl); ok {
			if !keptFunctions[f.Name.Name] {
				continue
			}
			if f.Name.Name == "GetOpenAPIDefinitions" {
				entries := definitionMap(f)
				entries.Elts = slices.DeleteFunc(entries.Elts, func(e ast.Expr) bool { return !kept[e] })
			}
		}
		declarations = append(declarations, declaration)
	}
	used := map[string]bool{}
	for _, declaration := range declarations {
		ast.Inspect(declaration, func(node ast.Node) bool {
			if selector, ok := node.(*ast.SelectorExpr); ok {
				if name, ok := selector.X.(*ast.Ident); ok && aliases[name.Name] {
					used[name.Name] = true
				}
			}
			return true
		})
	}

	var out bytes.Buffer
	out.WriteString("//go:build !ignore_autogenerated\n\n// Code generated by openapi-gen and trim. DO NOT EDIT.\n\npackage " + file.Name.Name + "\n\n")
	for _, declaration := range declarations {
		if imports, ok := declaration.(*ast.GenDecl); ok && imports.Tok == token.IMPORT {
			imports.Specs = slices.DeleteFunc(imports.Specs, func(spec ast.Spec) bool {
				return !used[spec.(*ast.ImportSpec).Name.Name]
			})
		}
		if err := printer.Fprint(&out, files, declaration); err != nil {
			return err
		}
		out.WriteString("\n\n")
	}
	source, err := format.Source(out.Bytes())
	if err != nil {
		return err
	}
	return os.WriteFile(path, source, 0o644)
}
