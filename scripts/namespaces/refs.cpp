#include "clang/AST/ASTConsumer.h"
#include "clang/AST/ASTContext.h"
#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/FrontendAction.h"
#include "clang/Lex/Lexer.h"
#include "clang/Tooling/JSONCompilationDatabase.h"
#include "clang/Tooling/Tooling.h"
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>
using namespace clang;
static std::string g_root;
static std::set<std::string> g_done;       // header files analysed in earlier units
static std::set<std::string> g_lines;
static void out(const std::string& s) { if (g_lines.insert(s).second) { fputs(s.c_str(), stdout); fputc('\n', stdout); } }

struct V : RecursiveASTVisitor<V> {
    using B = RecursiveASTVisitor<V>;
    ASTContext& C; SourceManager& SM;
    std::vector<std::string> ns;
    std::map<unsigned, NestedNameSpecifierLoc> qual;  // by raw name loc
    std::map<const Expr*, const CallExpr*> callee;
    std::set<std::string> seen;
    V(ASTContext& c) : C(c), SM(c.getSourceManager()) {}
    bool shouldVisitTemplateInstantiations() const { return false; }
    bool shouldVisitImplicitCode() const { return false; }

    std::string file(SourceLocation l) {
        if (l.isInvalid()) return "";
        l = SM.getSpellingLoc(l);
        const FileEntry* f = SM.getFileEntryForID(SM.getFileID(l));
        if (!f) return "";
        std::string n = f->tryGetRealPathName().str();
        if (n.rfind(g_root, 0) != 0) return "";
        return n.substr(g_root.size());
    }
    std::map<FileID, int> skip_cache;
    bool TraverseDecl(Decl* D) {
        if (!D) return true;
        if (isa<TranslationUnitDecl>(D)) return B::TraverseDecl(D);
        SourceLocation l = D->getLocation();
        if (l.isInvalid()) l = D->getBeginLoc();
        if (l.isValid() && (isa<TranslationUnitDecl>(D->getLexicalDeclContext()) || isa<NamespaceDecl>(D->getLexicalDeclContext()))) {
            SourceLocation e = SM.getExpansionLoc(l);
            FileID id = SM.getFileID(e);
            auto it = skip_cache.find(id);
            int sk;
            if (it == skip_cache.end()) {
                std::string f = file(e);
                sk = f.empty() || g_done.count(f);
                if (!f.empty()) seen.insert(f);
                skip_cache[id] = sk;
            } else sk = it->second;
            if (sk) return true;
        }
        return B::TraverseDecl(D);
    }
    bool TraverseNamespaceDecl(NamespaceDecl* D) {
        bool push = !D->isAnonymousNamespace() && !D->isInline();
        if (push) ns.push_back(D->getName().str());
        bool r = B::TraverseNamespaceDecl(D);
        if (push) ns.pop_back();
        return r;
    }
    std::string ctx() { std::string s; for (auto& n : ns) { if (!s.empty()) s += "::"; s += n; } return s; }
    static std::string path(const DeclContext* d) {
        std::string s;
        for (; d && !d->isTranslationUnit(); d = d->getParent())
            if (auto* n = dyn_cast<NamespaceDecl>(d)) { if (n->isAnonymousNamespace() || n->isInline()) continue; s = s.empty() ? n->getName().str() : n->getName().str() + "::" + s; }
        return s;
    }
    // the namespace-scope entity, or null
    static const NamedDecl* atScope(const NamedDecl* d) {
        if (!d) return nullptr;
        const DeclContext* c = d->getDeclContext();
        while (c && (isa<LinkageSpecDecl>(c) || (isa<EnumDecl>(c) && !cast<EnumDecl>(c)->isScoped()))) c = c->getParent();
        if (!c || !isa<NamespaceDecl>(c)) return nullptr;
        return d;
    }
    std::string where(SourceLocation l, bool& body) {
        body = false;
        if (l.isMacroID()) { if (!SM.isMacroArgExpansion(l)) body = true; else {
            // spelled in a macro body that is itself an argument?
            SourceLocation i = l; while (i.isMacroID() && SM.isMacroArgExpansion(i)) i = SM.getImmediateSpellingLoc(i);
            if (i.isMacroID()) body = true; } l = SM.getSpellingLoc(l); }
        return file(l);
    }
    std::string homeOf(const NamedDecl* d) {  // "T|qualified name" or "F|file"
        if (auto* ct = dyn_cast<ClassTemplateDecl>(d)) d = ct->getTemplatedDecl();
        if (auto* t = dyn_cast<TagDecl>(d)) return "T|" + path(d->getDeclContext()) + "::" + d->getNameAsString();
        if (auto* e = dyn_cast<EnumConstantDecl>(d)) { d = cast<NamedDecl>(cast<Decl>(e->getDeclContext())); return "F|" + file(d->getLocation()); }
        return "F|" + file(cast<NamedDecl>(d->getCanonicalDecl())->getLocation());
    }
    void ref(const NamedDecl* found, SourceLocation l, NestedNameSpecifierLoc q, const char* kind, const std::string& adl = "-") {
        const NamedDecl* d = atScope(found);
        if (!d) return;
        std::string p = path(d->getDeclContext());
        if (p.rfind("shardscope", 0) != 0) return;
        if (!d->getDeclName().isIdentifier() || !d->getIdentifier()) return;
        bool body; std::string f = where(l, body);
        if (f.empty()) { return; }
        std::string name = d->getName().str();
        SourceLocation s = SM.getSpellingLoc(l);
        unsigned off = SM.getFileOffset(s);
        int qo = -1, ql = 0; std::string qt = "-";
        if (q) {
            SourceLocation b = SM.getSpellingLoc(q.getBeginLoc()), e = SM.getSpellingLoc(q.getEndLoc());
            if (file(b) == f) { qo = SM.getFileOffset(b); ql = SM.getFileOffset(e) + 2 - qo;
                bool bad = false; StringRef t = SM.getBufferData(SM.getFileID(b), &bad); qt = t.substr(qo, ql).str(); }
            else qt = "?";
        }
        for (auto& c : qt) if (c == '\n' || c == '\t') c = ' ';
        out("R\t" + f + "\t" + std::to_string(off) + "\t" + name + "\t" + kind + "\t" + (ctx().empty() ? "-" : ctx()) + "\t" + std::to_string(qo) + "\t" + std::to_string(ql) + "\t" + qt + "\t" + p + "\t" + homeOf(d) + "\t" + adl + "\t" + (body ? "body" : "-"));
    }
    NestedNameSpecifierLoc qualAt(SourceLocation l) { auto it = qual.find(l.getRawEncoding()); return it == qual.end() ? NestedNameSpecifierLoc() : it->second; }

    static SourceLocation nameLoc(TypeLoc t) {
        if (auto x = t.getAs<ElaboratedTypeLoc>()) return nameLoc(x.getNamedTypeLoc());
        if (auto x = t.getAs<TemplateSpecializationTypeLoc>()) return x.getTemplateNameLoc();
        if (auto x = t.getAs<DeducedTemplateSpecializationTypeLoc>()) return x.getTemplateNameLoc();
        if (auto x = t.getAs<TypeSpecTypeLoc>()) return x.getNameLoc();
        return t.getBeginLoc();
    }
    bool VisitElaboratedTypeLoc(ElaboratedTypeLoc t) {
        if (auto q = t.getQualifierLoc()) qual[nameLoc(t.getNamedTypeLoc()).getRawEncoding()] = q;
        return true;
    }
    bool VisitDeducedTemplateSpecializationTypeLoc(DeducedTemplateSpecializationTypeLoc t) {
        ref(t.getTypePtr()->getTemplateName().getAsTemplateDecl(), t.getTemplateNameLoc(), qualAt(t.getTemplateNameLoc()), "type");
        return true;
    }
    bool TraverseNestedNameSpecifierLoc(NestedNameSpecifierLoc n) {
        if (n) {
            auto* s = n.getNestedNameSpecifier();
            if (s->getKind() == NestedNameSpecifier::TypeSpec || s->getKind() == NestedNameSpecifier::TypeSpecWithTemplate)
                if (auto p = n.getPrefix()) qual[nameLoc(n.getTypeLoc()).getRawEncoding()] = p;
        }
        return B::TraverseNestedNameSpecifierLoc(n);
    }
    bool VisitTagTypeLoc(TagTypeLoc t) {
        if (t.getNameLoc() == t.getDecl()->getLocation()) return true;
        ref(t.getDecl(), t.getNameLoc(), qualAt(t.getNameLoc()), "type"); return true;
    }
    bool VisitTypedefTypeLoc(TypedefTypeLoc t) { ref(t.getTypedefNameDecl(), t.getNameLoc(), qualAt(t.getNameLoc()), "type"); return true; }
    bool VisitUsingTypeLoc(UsingTypeLoc t) { ref(t.getFoundDecl(), t.getNameLoc(), qualAt(t.getNameLoc()), "type"); return true; }
    bool VisitTemplateSpecializationTypeLoc(TemplateSpecializationTypeLoc t) {
        ref(t.getTypePtr()->getTemplateName().getAsTemplateDecl(), t.getTemplateNameLoc(), qualAt(t.getTemplateNameLoc()), "type"); return true;
    }
    bool TraverseTemplateArgumentLoc(const TemplateArgumentLoc& a) {
        if (a.getArgument().getKind() == TemplateArgument::Template)
            ref(a.getArgument().getAsTemplate().getAsTemplateDecl(), a.getTemplateNameLoc(), a.getTemplateQualifierLoc(), "type");
        return B::TraverseTemplateArgumentLoc(a);
    }
    bool VisitTemplateTypeParmDecl(TemplateTypeParmDecl* d) {
        if (auto* c = d->getTypeConstraint()) ref(c->getNamedConcept(), c->getConceptNameLoc(), c->getNestedNameSpecifierLoc(), "concept");
        return true;
    }
    bool VisitAutoTypeLoc(AutoTypeLoc t) {
        if (t.isConstrained()) ref(t.getNamedConcept(), t.getConceptNameLoc(), t.getNestedNameSpecifierLoc(), "concept");
        return true;
    }
    bool VisitConceptSpecializationExpr(ConceptSpecializationExpr* e) {
        ref(e->getNamedConcept(), e->getConceptNameLoc(), e->getNestedNameSpecifierLoc(), "concept"); return true;
    }
    void assoc(QualType t, std::set<std::string>& o, int depth = 0) {
        if (t.isNull() || depth > 6) return;
        t = t.getNonReferenceType().getCanonicalType();
        while (true) {
            if (auto* p = t->getAs<PointerType>()) t = p->getPointeeType();
            else if (auto* a = C.getAsArrayType(t)) t = a->getElementType();
            else break;
        }
        if (auto* f = t->getAs<FunctionProtoType>()) { assoc(f->getReturnType(), o, depth + 1); for (auto p : f->param_types()) assoc(p, o, depth + 1); return; }
        TagDecl* tag = t->getAsTagDecl();
        if (!tag) return;
        auto add = [&](const TagDecl* d) {
            const DeclContext* c = d->getDeclContext(); const TagDecl* top = d;
            while (c && !isa<NamespaceDecl>(c) && !c->isTranslationUnit()) { if (auto* x = dyn_cast<TagDecl>(c)) top = x; c = c->getParent(); }
            if (c && isa<NamespaceDecl>(c)) { std::string p = path(c); if (p.rfind("shardscope", 0) == 0) o.insert(p + "::" + top->getNameAsString()); }
        };
        add(tag);
        if (auto* r = dyn_cast<CXXRecordDecl>(tag)) {
            if (auto* s = dyn_cast<ClassTemplateSpecializationDecl>(r))
                for (auto& a : s->getTemplateArgs().asArray()) {
                    if (a.getKind() == TemplateArgument::Type) assoc(a.getAsType(), o, depth + 1);
                    if (a.getKind() == TemplateArgument::Pack) for (auto& b : a.pack_elements()) if (b.getKind() == TemplateArgument::Type) assoc(b.getAsType(), o, depth + 1);
                }
            if (r->hasDefinition()) { r = r->getDefinition(); for (auto& b : r->bases()) { if (auto* t2 = b.getType()->getAsCXXRecordDecl()) add(t2); if (b.getType()->getAsCXXRecordDecl() && b.getType()->getAsCXXRecordDecl()->getNumBases()) assoc(b.getType(), o, depth + 1);} }
        }
    }
    std::string adlOf(const Expr* ref) {
        auto it = callee.find(ref);
        if (it == callee.end()) return "-";
        std::set<std::string> o;
        for (const Expr* a : it->second->arguments()) {
            if (isa<CXXDefaultArgExpr>(a)) continue;
            const Expr* e = a->IgnoreUnlessSpelledInSource();
            if (isa<InitListExpr>(e)) continue;
            if (auto* c = dyn_cast<CXXConstructExpr>(e)) if (!isa<CXXTemporaryObjectExpr>(c) && c->isListInitialization()) continue;
            assoc(e->getType(), o);
        }
        std::string s; for (auto& x : o) s += (s.empty() ? "" : ",") + x;
        return s.empty() ? "none" : s;
    }
    bool VisitCallExpr(CallExpr* c) {
        if (isa<CXXOperatorCallExpr>(c)) return true;
        if (const Expr* e = c->getCallee()) callee[e->IgnoreParenImpCasts()] = c;
        return true;
    }
    bool VisitDeclRefExpr(DeclRefExpr* e) {
        const NamedDecl* d = e->getFoundDecl();
        if (!isa<UsingShadowDecl>(d)) d = e->getDecl();
        if (auto* t = dyn_cast<FunctionTemplateDecl>(d)) d = t;
        ref(d, e->getLocation(), e->getQualifierLoc(), isa<FunctionDecl>(e->getDecl()) ? "func" : "var", adlOf(e));
        return true;
    }
    bool VisitUnresolvedLookupExpr(UnresolvedLookupExpr* e) {
        std::set<std::string> done;
        for (auto* d : e->decls()) ref(d, e->getNameLoc(), e->getQualifierLoc(), "lookup", e->requiresADL() ? "dependent" : "-");
        return true;
    }
    bool VisitUsingDecl(UsingDecl* u) {
        for (auto* s : u->shadows()) ref(s->getTargetDecl(), u->getNameInfo().getLoc(), u->getQualifierLoc(), "using");
        return true;
    }
    void place(const char* tag, Decl* d, SourceLocation l, const std::string& what) {
        bool body; std::string f = where(l, body);
        SourceLocation b = SM.getSpellingLoc(d->getBeginLoc()), e = SM.getSpellingLoc(d->getEndLoc());
        out(std::string(tag) + "\t" + f + "\t" + std::to_string(SM.getFileOffset(b)) + "\t" + std::to_string(SM.getFileOffset(e)) + "\t" + (ctx().empty() ? "-" : ctx()) + "\t" + what);
    }
    bool VisitUsingDirectiveDecl(UsingDirectiveDecl* u) {
        auto* n = const_cast<NamespaceDecl*>(u->getNominatedNamespace());
        std::string s; for (const DeclContext* c = n; c && !c->isTranslationUnit(); c = c->getParent()) if (auto* x = dyn_cast<NamespaceDecl>(c)) s = s.empty() ? x->getName().str() : x->getName().str() + "::" + s;
        if (s.rfind("shardscope", 0) == 0) place("D", u, u->getLocation(), s + "\t" + (u->getDeclContext()->isFunctionOrMethod() ? "local" : "scope"));
        return true;
    }
    bool VisitNamespaceAliasDecl(NamespaceAliasDecl* u) { place("A", u, u->getLocation(), u->getNameAsString() + "\t" + path(u->getNamespace())); return true; }
    bool VisitTagDecl(TagDecl* t) {
        if (!t->getIdentifier() || !atScope(t)) return true;
        std::string p = path(t->getDeclContext());
        if (p.rfind("shardscope", 0) != 0) return true;
        bool tmpl = isa<CXXRecordDecl>(t) && cast<CXXRecordDecl>(t)->getDescribedClassTemplate();
        bool spec = isa<ClassTemplateSpecializationDecl>(t);
        place("T", t, t->getLocation(), p + "::" + t->getNameAsString() + "\t" + (t->isThisDeclarationADefinition() ? "def" : "fwd") + "\t" + (t->getFriendObjectKind() ? "friend" : "-") + "\t" + (tmpl ? "tmpl" : spec ? "spec" : "-"));
        return true;
    }
    bool VisitFunctionDecl(FunctionDecl* f) {
        if (!f->getIdentifier() || !atScope(f)) { 
            return true; }
        std::string p = path(f->getDeclContext());
        if (p.rfind("shardscope", 0) != 0) return true;
        place("F", f, f->getLocation(), p + "::" + f->getNameAsString() + "\t" + (f->isThisDeclarationADefinition() ? "def" : "decl") + "\t" + (f->getFriendObjectKind() ? "friend" : "-") + "\t" + file(f->getCanonicalDecl()->getLocation()));
        return true;
    }
};
struct Consumer : ASTConsumer {
    void HandleTranslationUnit(ASTContext& c) override {
        V v(c); v.TraverseDecl(c.getTranslationUnitDecl());
        for (auto& f : v.seen) if (f.size() > 2 && f.substr(f.size() - 2) == ".h") g_done.insert(f);
        fflush(stdout);
    }
};
struct Action : ASTFrontendAction {
    std::unique_ptr<ASTConsumer> CreateASTConsumer(CompilerInstance& ci, StringRef f) override { fprintf(stderr, "## %s\n", f.str().c_str()); return std::make_unique<Consumer>(); }
};
int main(int argc, char** argv) {
    g_root = argv[1];
    std::string err;
    auto db = tooling::JSONCompilationDatabase::loadFromFile(argv[2], err, tooling::JSONCommandLineSyntax::Gnu);
    if (!db) { fprintf(stderr, "%s\n", err.c_str()); return 1; }
    std::vector<std::string> files = db->getAllFiles();
    std::sort(files.begin(), files.end());
    std::vector<std::string> mine;
    int k = atoi(argv[3]), n = atoi(argv[4]);
    for (size_t i = 0; i < files.size(); ++i) if (int(i % n) == k) mine.push_back(files[i]);
    if (argc > 5) mine.assign(argv + 5, argv + argc);
    tooling::ClangTool tool(*db, mine);
    return tool.run(tooling::newFrontendActionFactory<Action>().get());
}
