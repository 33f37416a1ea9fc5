"""Abbreviations that end in a full stop, by language, without it and in lower case.

They are those of the language data of spaCy 3.8 (github.com/explosion/spaCy, spacy/lang/*/tokenizer_exceptions.py, MIT License,
copyright ExplosionAI GmbH), where it has more for a language than for all. English has its own list in sentences.py.
"""

from __future__ import annotations


def abbreviations(language: str) -> frozenset[str]:
    """Return the abbreviations of a language by its code; none for a language without a list."""
    lines = (line.split() for line in f"\n{_LISTS}".split("\n-- "))
    return frozenset(next((words for code, *words in filter(None, lines) if code == language), ()))


_LISTS = """\
-- am
ኪ.ሜ ዓ.ም
-- ar
أ ب ت د
-- bg
ав авт агр адм акад ал ан англ араб арт арх археол астр афр бл бр букв бул в вм воен вр г геод геол геом гимн гл гр грам др ез ел ж.р жп жур
журн застр зем знач изр изт икон инж канц конкр л лат лв лит м.р мат мед мин.вр мн.ч муз напр нар науч непр обик опред особ ост относ отр
пад парл печ пл погов пол пон пр правосл прибл прил проф псих рим с с.р с.ст св сег сз соц сп срв старогр староевр стат стил стр счет съкр
съобщ същ т.е т.н т.нар текст тел телев топогр търг търж ул унив уч фарм фехт физ физиол фил фин фолкл фон фот фр футб харт хидр хим хир хол
хран църк ч числ чл шах шахм швед шотл юр яп
-- bn
কি.মি ড ডা মি.লি মো সে সে.মি
-- ca
abr aprox dec dr dra feb gen jul nov oct p.ex pl pàg set sr sra srta st sta à è é í ò ó ú
-- da
a.d aarh ac adj adr adsk adv afb afd afg afk afs aht alg alk alm amer ang ank anl anv apr arb arr att aug b.c b.t bd bdt beg begr beh bet
bev bhk bib bibl bidr bildl bill biol bk bl bl.a borgm boul br brolægn bto bygn ca cand chr cm d.d d.m d.s d.s.s d.v.s d.y d.å d.æ dagl dat
dav dec def dek dep desl diam dir disp distr div dkr dl do dobb dr dr.phil dronn ds dvs e.b e.l e.o e.v.t eftf eftm egl eks eksam ekskl eksp
ekspl el.lign emer endv eng enk etc etym eur evt exam f.eks f.m f.n f.o f.o.m f.s.v f.t f.v.t f.å fa fakt fam feb febr ff fg fhv fig filol
filos fl flg fm fmd fol forb foreg foren forf fork forr fors forsk forts fr fr.u fre frk fsva fuldm fung fx fys fær g.d g.m gd gdr genuds gl
gn gns gr grdl gross h.a h.c h.k.h h.m hdl henv hf hhv hj.hj hj.spl hort hosp hpl hr hrs hum hvp i.e ib id if iflg ifm ift iht ill inc indb
indreg inf ing inh inj inkl insp instr isl istf it ital iv j.nr jan jap jf jfr jnr jr jun jur jvf kap kbh kem kg kgl kgs kl kld km km/t knsp
komm kons korr kp kprs kr kst kt ktr kv kvm kvt l.a l.c lab lat lb.m lb.nr lejl lgd lic lign lin ling.merc litt ll loc.cit lok lrs ltr lør
m.a.o m.fl m.h.p m.h.t m.m m.v m.v.h m/sek mag maks man mar md mdr mdtl mezz mfl mht mia mik mill mio modt mr mrk mul mv n.br n.f nb ndr
nedenst nl nov nr nto nuv o.a o.fl o.h o.l o.lign o.m.a o.s.fr o/m obl obs odont oecon off ofl okt omg omkr omr omtr ons opg opl opr org
orig osv ovenst overs ovf p.a p.c p.m p.m.v p.n p.p p.p.s p.s p.t p.v.a p.v.c pag pass pcs pct pd pens pers pft pg pga pgl ph.d pinx pk pkt
polit polyt pos pp ppm pr prc priv prod prof pron prs præd præf præt psych pt pæd q.e.d rad rcp red ref reg regn rel rep repr resp rest rm
rtg russ s.br s.d s.f s.m.b.a s.u s.å sa sb sc scient scil sdr sek sekr self sem sep sept shj sign sing sj skr skt slutn sml smp snr soc
soc.dem sp spec spl spm spr spsk st statsaut stk str stud subj subst suff sup suppl sv såk sædv t.h t.o t.o.m t.v tbl td tdl tdr techn tekn
temp th theol tidl tilf tilh till tilsv tirs tjg tkr tlf tlgr tor tors tr trp tsk tv ty udb udbet ugtl undt v.f vb vedk vedl vedr vejl vg vh
vha vind vs vsa vær zool årg årh ø.lgd øvr
-- de
a.c a.d a.g a.m a.z abb abk abs abt abzgl adv al allg apr aug b.a b.sc bd betr bf bhf biol bsp bspw bzgl bzw ca chr cie co d.c d.h dez dgl
di dipl dipl.-ing do dr e.g e.v ebd ehem eigtl engl entspr erm etc ev evtl fa fam feb fr frl frz g.m.b.h geb gebr gegr gem ggf ggfs ggü h.c
hbf hg hr hrn hrsg i i.a i.d.r i.e i.g i.o i.tr i.v ii iii inc incl ing inkl insb iv jan jh jhd jr jul jun jur k.o kath l.a lat lt m.a m.e
m.m m.sc max mi min mind mio mo mr mrd mrz mtl mwst mär n.chr n.y n.y.c nat nov nr o.a o.g o.k o.ä okt orig p.a p.s pers phil pkt prof q.e.d
r.i.p red rer röm s.o sa sen sep sept so sog st std stellv str tel tsd tägl u.a u.s u.s.a u.s.s u.s.w u.u u.v.m univ usf usw uvm v.a v.chr
v.l.n.r vgl vllt vlt vol vs wiss z.b z.bsp z.t z.z z.zt zzgl österr
-- el
άγ άρθρ α.ε α.ε.β.ε α.ε.ι α.ε.π α.μ.α α.π.θ α.τ α.χ αγ αγρ αθ αι αλ αλεξ αν αντ απ απρ αρ αριθ αριθμ αύγ β.ζ β.ι.ο β.κ β.μ.α βασ βλ γ.γ γ.δ
γεν γκ γραμμ δ.δ δ.ε.η δ.ε.σ.ε δ.ν δ.ο.υ δ.ς δ.σ δ.υ δεκ δηλ δημ δι.κα.τ.σ.α διον δισ δολ δρχ ε.α ε.α.κ ε.α.π ε.ε ε.κ ε.κε.πις ε.λ.α ε.λ.ι.α
ε.π.ς ε.π.τ.α ε.σ.ε.ε.κ ε.υ.κ εε εθν εκ εκατ ελ ελ.ας εμ επ ευ η.π.α θε θεμ θεοδ θρ ι.ε.κ ι.κ.α ι.κ.υ ι.σ.θ ι.χ ιαν ιούλ ιούν ιχ ιωαν κ κ.ά
κ.α κ.α.α κ.α.ε κ.β.ς κ.δ κ.ε κ.ε.κ κ.ι κ.ι.θ κ.κ κ.κεκ κ.λπ κ.ο κ.ο.κ κ.π.ρ κ.τ.λ καν καρ κατ κκ κλπ κτλ κυβ κυρ κων λ.α λ.χ λεωφ λι μ
μ.δ.ε μ.ε.ο μ.ζ μ.μ μ.μ.ε μ.ο μ.χ μάρτ μεγ μιλ μιλτ μιχ ν.δ ν.ε.α ν.κ ν.ο ν.ο.θ ν.π.δ.δ ν.υ νδ νικ νοέμβρ ντ ο.α ο.α.ε.δ ο.δ ο.ε.ε ο.ε.ε.κ
ο.η.ε ο.κ οκτ π.β π.δ π.ε.κ.δ.υ π.ε.π π.μ π.μ.ς π.χ παρ πλ πολ πρ σ σ.α.λ σ.δ.ο.ε σ.ε σ.ε.κ σ.π.δ.ω.β σ.σ σ.τ σαβ σελ σεπτ στ στε στρ τ.α
τ.ε.ε τ.ε.ι τ.μ τετ τετρ τζ τηλ τρ τρισ τόν υ.γ υγ υπ υπ.ε.π.θ φ.α.β.ε φ.κ φ.π.α φ.ς φ.χ φεβρ φιλ χ.α.α χ.μ χ.χ χαρ χγρ χιλ χλμ χρ
-- es
a.c a.j.c apdo aprox av avda cía d.c d.j.c dna dpto dr dra ee.uu ej esq etc fig gob gral ing j.c lic m.n núm p.d p.ej prof profa pág q.e.p.d
s.a s.l s.r.l s.s.s sr sra srta ud uds vd vds vol
-- fi
aik alk alv ao ark as eaa ed em esim huom jne joht ko ks lk lkm lyh läh miel milj ml mm myöh nimim ns nyk oik os par per pj po prof puh
puh.joht pvm rak ry siht so srk synt tark til tms toim ts vas vast vm vrt yht yl yliopp ym yms yo
-- fo
apr aug avgr beinl blaðkv blaðm blaðstj blkv blm bls blstj des eint febr ff fyrrv góðk h.m innt jan kl m.a mió mðr nov nr nto nút o.a o.a.m
o.a.tíl o.fl o.m.a o.o o.s.fr o.tíl o.ø okt omf pst ritstj sb sbr sbrt sept smb sms smst sp spf spsk t.d t.e t.o.v t.s t.s.s tel tlf tsk uml
ums uppl uppr upprfr v v.h v.m v.ø.o vanl viðm viðv vm árg ávís útg útl útr
-- fr
apr av avr cf dr déc etc févr j.-c janv juill m mlle mm mme mr no nov oct pp sept st ste vol
-- ga
a.c.n aib ath beal co d.f d.fómh ean feab gco lch lgh lún m.f m.fómh m.sh meith már noll r.c r.ch r.chr samh srl tath teo tuas uas uimh ⁊rl
-- hu
a a.c ac adj adm ag agit akh alez alk all altbgy an ang arch at atc aug aö b b.a b.cs b.s b.sc b.ú.é.k bat be bek belker berend bfok biz
bizt bk bo bp br bros bsc bt btk btke btét c ca cal cc cca cf cg cgf cgt cia cif co colo comp copr corp cos cs csc csop cstv csüt cső ctv
ctvr d dbj dd ddr de dec dikt dipl dj dk dl dny dolg dr dsz du dzs e ea ed eff egyh ek ell elv elvt em eng eny et etc eu ev ezr eü f f.h f.é
fam fb febr fej felv felügy ff ffi fhdgy fil fiz fla fm foglalk folyt ford fp fpk fr frsz fszla fszt ft fuv főig főisk főszerk főtörm főv g
gazd gfv gimn gk gkv gm gmk gondn gr grav group gt gy gyak gyártm gör h hads hallg hdm hdp hds hg hiv hk hksz hm hmvh ho honv hp hr hrsz hsz
ht htb hv hőm i i.e i.sz id ie ifj ig igh ill imp inc ind inform inic int io ip ir irod isk ism izr iá j jan jav jegyz jgmk jjv jkv jogh
jogt jr jv jvb júl jún k k.m.f karb kat kath kb kcs kd ker kf kft kg kht kir kirend kisip kiv kk kkt klin km kong korm kp kr kr.e kr.u krt
kt ktsg kult kv kve képv kísérl kóth könyvt körz köv közj közl közp közt kü l lat lb ld legs lg lgv llc loc lt ltd ltp luth m m.a m.s m.sc
ma mass mat max mb med megh met mf mfszt mh min miss mjr mjv mk mlle mme mn mo mozg mr mrs ms msc mt má máj márc mé mélt mü műh műsz műv
művez n n.n nagyker nagys nat nb nbr neg nk no nov nr nu ny nyh nyilv nyr nyrt nyug o obj oj okl okt old olv op orsz ort ov ovh p p.h p.s pf
pg ph.d phd phil pjt pk pl plb plc pld plur pol polg poz pp proc prof prot pság ptk pu pü r r.k rac rad red ref reg rer rev rf rkp rkt rt
rtg röv s s.b s.k sa salg sb sch sel sgt sm spa st stat stb strat stud sz szakm szaksz szakszerv szd szds szept szerk szf szfv szimf szjt
szkv szla szn szolg szrt szt sztv szubj szvt számv szöv szül t tanm tb tbk tc techn tek tel tf tgk ti tip tisztv titks tk tkp tny tp tszf
tszk tszkv tv tvr ty tyr törv tü u ua ui unit uo ut uv v vas vb vcs vegy vh vhol vhr vht vill vizsg vk vkf vkny vm vol vs vsz vv vál várm
vízv vö w x x.y y z zrt zs á áe áht ált ápr ásv é ék ény épt érk ész évf í ó össz ötk özv ú ú.n új-z újz úm ún út üag üd üdv üe ümk ütk üv
őrgy őrpk őrv ű
-- id
a.ab a.l a.ma a.md a.md.keb a.md.kep a.n a.p a.s ags agu apr b.a b.ch.e b.d b.sc d.a d.l des dkk dll dr dra drg drh drs ds dsb dst faks fax
feb hj hlm jan jul jun ka kh kp m.a m.ag m.eng m.eng.sc m.hum m.i.kom m.kom m.m m.p m.pd m.pharm m.psi m.psi.t m.sc m.si m.sn m.t m.th mar
n.b no nov okt p.p.pjs pdt pjs plt prof ps r r.a r.ay r.b r.m r.ng r.ngt r.p rm rr s.ag s.d s.e s.e.i s.gz s.h s.h.h s.hut s.i.kom s.ik s.in
s.k.m s.kedg s.kedh s.kom s.p s.pd s.pd.i s.pol s.psi s.s s.sarl s.si s.si.teol s.sos s.st s.sy s.t s.t.p s.tekp s.th s.th.is.ti sep st tel
u.p ust
-- it
a.c al all'art all’art art artt att avv c.d civ cm cod col cost d.c dall'art dall’art dell'art dell’art distr ecc etc jr l'art l’art
nell'art nell’art pag proc prof s.p.a sett sett. ss st tel
-- ky
авг апр б.з б.з.ч бей дек дүй ж ж.б ж.б.у.с жек жж жум ишм июл июн к кк көч мар млн млрд ноя окт сен фев шар шей янв
-- la
a a.d a.u.c aa aaa acc agr ap apr april aug c caes caess cc cn coll cons conss cos coss d d.n dat dd dec decemb decembr f feb febr februar
ian id imp impp imppp iul iun k kal l m m' mai mam mar mart med m’ n nn nob non nou nouemb nov novemb oct octob opet ord p paul pf pl plur
post pp prid pro procos q quint s s.c scr sept septemb ser sert sex sext st sta suff t ti trib u uol uop uu v vol vop vv
-- lb
asw bzw dipl dr etc i.e jan m mme o.k p.a p.s phil q.e.d r.i.p rer sen tel u.s u.s.a wgl z.b ë.a
-- mk
арх бел бот бр в в.д г г.г геогр гимн год гр ден др инж истор кн литер м.р мат мед мн н.е о.г о.м прид прил проф с с.р св сврз сп стр студ т
т.е т.н ул физ хем чл
-- ms
a.n a.s a.s.f a.s.o a.t a.t.r abd act am amo ams ant apr ar ark ast aug ayb b.d b.h b.k b.p b.s.j b.sc b.sh bhd bil bio bkn bpd br bt c c.l
cm col d.l.l d.sb d.st dan dec deu dgn dis dlm dng doz dr drp drpd dt dw.t ecc ef eko en eph est exo eze ezr f.e feb fiz flm flp gal gbps
gen geo geog gwh hab hag hak hb heb hj hos hut i.b i.e i.pt i.s i.t ibr id im in isa ist jam jan jb jdg jer jh jk jkps joe joh jon jos jud
jul jun jw kd kej kel kep kg ki kid kim kis kl kol kom komp kpd lam lb lev lin luk lw lwn m.r mac mal mar mat mi mic mis ml mlpd mmscfd mn
mppa mrk muz mzm nah neh no nov num ob oba oct ogo ogos okt oz p.l pd ph phi phm pkh pl pn pol ppd pr prb pro prof psa psi r.l rat rev rm
rom rt rut s.a.w s.f sas sb sbg sdr sej sep sept si sj sl son sos t.s.t t.sh t.t tadb tit tks tr tsb tscf udg ul utk why y.th yak yeh yer
yes yg yl yoh yos yud yun za zec zef zep
-- nb
a.m ad adm.dir ap apr aq aug b.c bl.a bla bm bnr bto c.c ca cand.mag chr co d.d d.m d.y dept des dr dr.med dr.philos dr.psychol dvs e.kr e.l
eg ekskl el et etc etg ev evt f.eks f.kr f.o.m feb fhv fk foreg fork fr.p frp fv fvt gl gno gnr grl gt h.r.adv hhv hoh hr ifb ifm iht inkl
istf jan jf jr jul jun juris kfr kgl kgl.res kl komm kr kr.f kst lat lø m.a.o m.fl m.m m.v ma mag.art mar md mfl mht mill min mnd moh mr mrd
mrs muh mv mva n.å ndf no nov nr nto nyno o.a o.l off ofl okt on op org osv ovf p.a p.g.a p.m p.t pb pga ph.d pkt pr pst pt red.anm ref res
res.kap resp rv s.d s.k s.u s.å sen sep siviling sms snr sp spm sr sst st st.meld st.prp stip stk stud sv såk sø t.h t.o.m t.v temp ti tils
tilsv tlf to ult utg vedk vedr vg vgs vha vit.ass vn vol vs vsa årg årh
-- nl
a.a a.a.j.b a.f.t a.g.j.b a.h.v a.h.w a.hosp a.i a.j.b a.j.t a.m a.m.r a.p.m a.p.r a.p.t a.s a.t.d.f a.u.b a.v.a a.w aanbev aanbev.comm aant
aanv.st aanw aanw.vnw abd abm abs acc.act acc.bedr.m acc.bedr.t achterv act.dr act.dr.fam act.fisc act.soc adm.akk adm.besl adm.lex
adm.onderr adm.ov adv adv.bl afd afl aggl.verord agr al alg alg.richts amén ann.dr ann.dr.lg ann.jur.créd ann.not ann.parl ann.ét.eur app
arb arbbl arbh arbit.besl arbrb arr arr.cass arr.r.v.st arr.verbr arrondrb art artw aud b b.&w b.a b.a.s b.b.o b.best.dep b.br.ex b.d.cult.r
b.d.gem.ex b.d.gem.reg b.dep b.e.b b.f.r b.fr.gem.ex b.fr.gem.reg b.i.h b.inl.j.d b.inl.s.reg b.j b.l b.o.z b.prov.r b.r.h b.s b.sr b.stb
b.t.i.r b.t.s.z b.t.w.rev b.v b.verg.r.b b.versl b.vl.ex b.voorl.reg b.w b.w.gew.ex b.z.d.g b.z.v bab bedr.org begins beheersov bekendm.comm
bel bel.besch bel.w.p beleidsov belg ber ber.w besch besl beslagr best bestuurswet bet betr bevest bew bijbl bijl bijv bijw bijz.decr bin.b
bkh bl blz bm bn bnw bouwr br.parl bs bull bull.ass bull.b.m.m bull.bel bull.bmm bull.c.b.n bull.c.n.c bull.cbn bull.cnc bull.contr
bull.f.e.b bull.feb bull.i.u.m bull.inf.iec bull.inf.ire bull.ium bull.jur.imm bull.lég.b bull.off bull.us bull.v.b.o bull.vbo bv bw bxh byz
c c.a c.a.-a c.a.b.g c.c c.c.i c.c.s c.conc.jur c.d.e c.d.p.k c.e c.ex c.f c.h.a c.i.f c.i.f.i.c c.j c.l c.n c.o.d c.p c.pr.civ c.q c.r
c.r.a c.s c.s.a c.s.q.n c.v c.v.a c.v.o ca cadeaust cah.const cah.dr.europ cah.dr.immo cah.dr.jud cal cap carg cas cass cert cf ch chr chron
chron.d.s chron.dr.not cie cir circ circ.z cit cit.loc civ cl.et.b cmt co cognoss.v coll colp.w com com.v.min comm comm.bijz.ov comm.erf
comm.fin comm.ger comm.handel comm.pers comm.pub comm.straf comm.v comm.venn comm.verz comm.voor comp compt.w computerr con.m concl concr
conf confl.w cons conv corr corr.bl cour.fisc cour.immo coöp cridon crim crt cur curs d d.-g d.a d.a.v d.b.f d.c d.c.c.r d.d d.d.p d.e.t
d.gem.r d.h d.h.z d.i d.i.t d.j d.l.r d.m d.m.v d.o.v d.parl d.w.z dact dat dbesch dbesl dec decr decr.d decr.fr decr.vl decr.w deelw def
dep.opv dep.rtl derg desp det.mag deurw.regl dez dgl dhr disp diss div div.act div.bel dl dln dnotz doc doc.jur.b doc.min.fin doc.parl doctr
dpl dpl.besl dr dr.banc.fin dr.circ dr.inform dr.mr dr.pén.entr dr.q.m drs ds dtp dwz dyn e e&o.e e.a e.b e.c e.c.a e.d e.e e.e.a e.e.g e.g
e.g.a e.h.a e.i e.j e.m.a e.n.a.c e.o e.p.c e.r.c e.r.f e.r.h e.r.o e.r.p e.r.v e.s.r.a e.s.t e.v e.v.a e.w ec.pol.r econ ed ed(s) eff eig
eig.mag eil elektr enmb enz err etc etq eur eur.t.s ev evt ex ex.crim exec f f.a.o f.a.q f.a.s f.i.b f.j.f f.o.b f.o.r f.o.s f.o.t f.r
f.supp f.suppl fa facs fasc fg fid.ber fig fin fin.verh.w fisc fisc.act fisc.koer fl form foro fr fr.cult.r fr.gem.r fr.parl fra ft g g.a
g.a.v g.a.w.v g.g.d g.m.t g.o g.omt.e g.p g.s g.v g.w.w geb gebr gebrs gec gec.decr ged ged.st gedipl gedr.st geh gem gem.comm gem.gem.comm
gem.st gem.stem gem.w gemeent gemeent.b gemeent.regl gen geol geopp gepubl ger.deurw ger.w gerekw gereq gesch get getr gev.m gev.maatr gew
ghert gir.eff.verk gk gr gramm grat.w grondw grootb.w grs grvm grw gst gw h.a h.a.v.o h.b.o h.e.a.o h.e.g.a h.e.geb h.e.gestr h.l h.m h.o
h.r h.t.l h.t.m h.w.geb hand handelsn.w handelspr handelsr.w handelsreg.w handv harv.l.rev hc herald hert herz hfdst hfst hgrw hhr hist
hooggel hoogl hosp hpw hr hr.ms hregw hrg hst huis.just huisv.w huurbl hv.vn hw hyp.w i.b.s i.c i.c.m.h i.e i.f i.f.p i.g.v i.h i.h.a i.h.b
i.l.pr i.o i.p.o i.p.r i.p.v i.pl.v i.r.d.i i.s.m i.t.t i.v i.v.m i.v.s i.w.tr i.z ib ibid iem inc ind indic.soc indiv inf inf.i.d.a.c
inf.idac inf.riziv inf.soc.secr ing ing.cons inst int interm inv inv.w inv.wet invord.w inz ir irspr it iwtr j j.-cl j.c.b j.c.e j.c.fl
j.c.j j.c.p j.d.e j.d.f j.d.s.c j.dr.jeun j.j.d j.j.p j.j.pol j.l j.l.m.b j.l.o j.p.a j.r.s j.t j.t.d.e j.t.dr.eur j.t.o j.t.t jaarl jb.hand
jb.kred jb.kred.c.s jb.l.r.b jb.lrb jb.markt jb.mens jb.t.r.d jb.trd jeugdrb jeugdwerkg.w jg jhr jis jl journ.jur journ.proc jr jrg jur
jur.comm.fl jur.f.p.e jur.fpe jur.niv jurambt jv.cass jv.h.r.j jv.hrj jw k k.b k.g k.k k.m.b.o k.o.o k.v.k k.v.v.v kadasterw kaderb kador
kbo-nr kg kh kiesw kind.bes.v kkr kon koopv kr krankz.w ksbel kt ktg ktr kvdm kw.r kymr kzr kzw l l.b l.b.o l.bas l.c l.gew l.j l.k l.l l.o
l.p l.r.b l.u.v.i l.v.r l.v.w l.w landinr.w landscrt lat law.ed lett levensverz lgrs lidw limb.rechtsl lit litt liw liwet lk ll ll.(l.)l.r
loonw losbl ltd luchtv luchtv.w m m.a.v.o m.a.w m.b m.b.o m.b.r m.b.t m.d.g.o m.e.a.o m.e.r m.h m.h.d m.i.v m.j.t m.k m.m m.m.a m.m.h.h
m.m.v m.n m.not.fisc m.nt m.o m.r m.s.a m.u.p m.v.a m.v.h.n m.v.t m.z maced mand max mbl.not me med med.b.u.f.r med.bufr med.vbo meerv
meetbr.w mej mevr mgr mgrs mhd mi.verantw mil mil.bed mil.ger min min.j.omz mitt mln mnd mod mon mouv.comm mr ms muz mv mém.adm n n.a n.a.g
n.a.v n.b n.c n.chr n.d n.d.r n.e.a n.g n.h.b.c n.j n.j.b n.j.w n.l n.m n.m.m n.n n.n.b n.n.g n.n.k n.o.m n.o.t.k n.rapp n.tijd.pol n.v
n.v.d.r n.v.d.v n.v.h n.v.o.b n.v.t nat.besch.w nat.omb nat.pers ned ned.cult.r neg.verkl nhd njcm-bull nl nnd no not not.fisc.m not.w
not.wet nr nrs nste nt numism o o.a o.b o.c o.g o.g.v o.i o.i.d o.m o.o o.o.d o.o.v o.p o.r o.regl o.s o.t.s o.t.t o.t.t.t o.t.t.z o.tk.t
o.v.t o.v.t.t o.v.tk.t o.v.v ob obsv octr octr.regl oe off.pol ofra ohd omb omnil omz on.ww onderr onfrank onteig.w ontw onuitg onz oorl.w
op.cit opin.pa opm or ord.br ord.gem ors orth os osm ov ov.w.i ov.w.ii ov.ww overg.w overw ovkst oz p p.a p.a.o p.b.o p.e p.g p.j p.m p.m.a
p.o p.o.j.t p.p p.v p.v.s pachtw pag pan pand.b pand.pér parl parl.gesch parl.st part.arb pas pasin pat pb.c pb.l pct pens pensioenverz
per.ber.ibr pers pft pk pktg plv po pol pol.off pol.r pol.w postbankw postw pp pr preadv pres prf prft prg prijz.w proc procesregl prof prot
prov prov.b prov.regl prov.verord prov.w publ pun pw q.b.d q.e.d q.q q.r r r.a.b.g r.a.c.e r.a.j.b r.b.d.c r.b.d.i r.b.s.s r.c r.c.b r.c.d.c
r.c.j.b r.c.s.j r.cass r.d.c r.d.i r.d.i.d.c r.d.j.b r.d.j.p r.d.p.c r.d.s r.d.t.i r.e r.f.s.v.p r.g.a.r r.g.c.f r.g.d.c r.g.f r.g.z r.h.a
r.i.c r.i.d.a r.i.e.j r.i.n r.i.s.a r.j.d.a r.j.i r.k r.l r.l.g.b r.med r.n.b r.o r.ov r.p r.p.d.b r.p.o.t r.p.r.j r.p.s r.r.d r.r.s r.s
r.s.v.p r.stvb r.t.d.f r.t.d.h r.t.l r.v.a r.v.k r.verkb r.w r.w.d rap.ann.c.a rap.ann.c.c rap.ann.c.e rap.ann.ca rap.ann.cass rap.ann.cc
rap.ann.ce rap.ann.csj rapp rb rb.kh rdn rdnr re.pers rec rec.c.i.j rec.c.j.c.e rec.cij rec.cjce rechtsh rechtsk.t rechtspr.bfe recl.reg
rect red reg reg.huiz.bew reg.w registr.w regl regl.besl regl.onderr regl.r.t rep rep.r.j rep.rj req res resp rev rev.acc.trav rev.adm
rev.b.compt rev.banc.fin rev.comm rev.dr.b rev.dr.fam rev.dr.mil rev.dr.min rev.dr.pén rev.dr.rur rev.dr.u.l.b rev.dr.ulb rev.dr.étr rev.exp
rev.faill rev.fisc rev.gd rev.hist.dr rev.i.p.c rev.ipc rev.not.b rev.prat.soc rev.rec rev.rw rev.trav rev.trim.d.h rev.urb rh richtl
riv.dir.int rk rln roln rom rondz rov rprt rtl rubr ruilv.wet rv.verdr rvkb rép.fisc rép.not s s.a s.b.n s.ct s.d s.e.c s.e.et.o s.e.w
s.exec.rept s.hrg s.j.b s.l s.l.e.a s.l.n.d s.p.a s.s s.t s.t.b s.v s.v.p samenw sc sch schepel.besl sec secr.comm secr.gen sect.soc sess
sir soc soc.act soc.best soc.kron soc.r soc.sw soc.weg sofi-nr somm somm.ann sp.c.c sr ss st st.doc.bcnar st.vw stagever stas stat stb stbl
stcrt strafz stud.dipl su subs subst succ.w suppl sv sw t t.a t.a.a t.a.n t.a.p t.a.s.n t.a.v t.a.v.w t.aann t.acc t.agr.r t.app t.b.b.r
t.b.h t.b.m t.b.o t.b.p t.b.r t.b.s t.b.v t.bankw t.belg.not t.desk t.e.m t.e.p t.f.r t.fam t.fin.r t.g.r t.g.t t.g.v t.gem t.gez t.huur
t.i.n t.j.k t.l.l t.l.v t.m t.m.r t.m.w t.mil.r t.mil.strafr t.not t.o t.o.r.b t.o.v t.ontv t.p.r t.pol t.r t.r.g t.r.o.s t.r.v t.s.r
t.strafr t.t t.u t.v.c t.v.g t.v.m.r t.v.o t.v.v t.v.v.d.b t.v.w t.verz t.vred t.vreemd t.w t.w.k t.w.v t.w.v.r t.wrr t.z t.z.t t.z.v taalk
tar.burg.z td techn tek.mod telecomm th tijdschr toel toel.st.v.w toep toep.regl tom top trans.b transp.r trb trib trib.civ trib.gr.inst
trim ts tvpol tvpr tw u u.a u.a.r u.a.v u.c u.c.c u.g u.p u.s u.s.d.c uitdr uitl.w uitv.besl uitv.reg uitv.reg.lb univ univ.verkl v v.a
v.a.v v.b.o v.c v.chr v.d v.h v.huw.verm v.i v.i.o v.j v.k.a v.m v.o.f v.o.n v.p v.r v.s.o v.t.t v.t.t.t v.tk.t v.v.b v.v.g v.v.t v.v.t.t
v.v.tk.t v.w.b v.z.m vb vb.bo vbb vc vd veldw ver ver.k ver.verg.gem verbr verd verdr verdr.v verenw verg verg.fr.gem verkl verl vern verord
vers.r versch versl.c.s.w versl.csw vert verv verw verz verz.schr verz.w vgl vid viss.w vl.parl vl.r vl.t.gez vl.w.reg vl.w.succ vlg vn vnl
vnw vo vo.bl voegw vol volg volt voorl voorz vord.w vorst.d vr vred vrg vrijgrs vs vt vw vz vzngr vzr w w.a w.b.r w.c.h w.conf.huw
w.consum.kr w.f.r w.g w.gew.r w.ident.pl w.just.doc w.kh w.l.r w.l.v w.n w.not.ambt w.o w.o.d.k w.parl w.r w.reg w.succ w.u.b w.v w.v.k
w.v.m.s w.v.r w.v.w w.venn wac wd wetb wgb winkelt.w wisk wka-verkl wnd won.w woningw woonr.w wrr wrr.ber wrsch ws wsch wsr wtvb ww x.d z.a
z.g z.i z.j z.o.z z.p z.s.m zg zgn zn znw zr zr.ms
-- nn
a.m ad adm.dir adr ap apr aq aug b.c bl.a bla bm bnr bto c.c ca cand.mag chr co d.d d.m d.y dept des dr dr.med dr.philos dr.psychol dss dvs
e.kr e.l eg eig ekskl el et etc etg ev evt f.eks f.kr f.o.m feb fhv fk foreg fork fr.p frp fv fvt gl gno gnr grl gt h.r.adv hhv hoh hr ifb
ifm iht inkl istf jan jf jr jul jun juris kfr kgl kgl.res kl komm kr kr.f kst lat lø m.a m.a.o m.fl m.m m.v ma mag.art mar md mfl mht mill
min mnd moh mr mrd mrs muh mv mva n.å ndf nov nr nto nyno o.a o.l obl off ofl okt on op org osv ovf p.a p.g.a p.m p.t pb pga ph.d pkt pr pst
pt red.anm ref res res.kap resp rv s.d s.k s.u s.å sen sep siviling sms snr sp spm sr sst st st.meld st.prp stip stk stud sv såk sø t.d t.h
t.o.m t.v temp ti tils tilsv tlf to ult utg vedk vedr vg vgs vha vit.ass vn vol vs vsa årg årh
-- pt
adm art av cia dom dr e.g ed eng etc fund gen gov i.e inc jr ltd mr p.m pag ph.d pág rep rev sen sr sra tel vs
-- ro
a.c a.f a.m a.r al alin art aug bd d.p.d.v dem dr dvs etc ex fig fr gh gr ian ing ingr lit lt nr obs p.a p.m pct prep prof rom s.a s.a.m.d
samd sf st str tel univ îngr ş.a ş.a.m.d şamd şt ș.a ș.a.m.d șamd șt
-- ru
coop а.обл а.окр авг ак акад ал апр асп б.п в.н.с взв взд влд вн.тер.г воскр вс вскр вт г г.г г.о г.п г.ф.з гг гп д д.б.н д.г.-м.н д.г.н
д.и.н д.иск д.м.н д.п.н д.пед.н д.полит.н д.с.-х.н д.социол.н д.т.н д.ф.-м.н д.ф.н д.фил.н д.филос.н д.х.н д.э.н д.ю.н двлд дек дир долл дор
доц зд ззд зим и.о им июл июн к к.б.н к.воен.н к.г.-м.н к.г.н к.и.н к.иск к.ист.н к.м.н к.м.с к.п.н к.пед.н к.полит.н к.псх.н к.с.-х.н к.с.н
к.соц.н к.социол.н к.т.н к.ф.-м.н к.ф.н к.фарм.н к.фил.н к.филос.н к.х.н к.э.н к.ю.н кв кв.м киш ком кот кп лн м.н.с мар мгстр мкр мрт наб
наст нбр ноя нояб обл окт октб оф п п.г.т пав пгт пер пл платф пн подв помещ пос прим прим.ред проул проф пт р.п раб.уч респ рзд рп руб с
с.п сб сбт сен сент сзд скл сл см сокр ср ст стр т.г т.д т.е т.к т.н т.п тер тер.ф.х тов туп тыс тыс.руб у ул ус фев февр х чел чл.-к
чл.-кор чл.-корр чт чтв ш ю янв
-- sl
aa ab abc abit abl abs abt acc accel add adj adm adv aer aet afr agr akad al alban all alleg alp alt alter alžir am amer an anat andr ang
angl anh anon ans ant antr antrop apoc app approx apr apt ar arab arc arch arh arheol arhit arr as asist assist assoc asst astr attn aug avg
avstr avstral avt az bab bal bbl bd belg bibl bioinf biokem biol biomed bk bl bn bolg borg bot bp br braz brit bros broš bt bu ca cal can
cand cantab cap capt cat cath cc cca cd cdr cdre cent cerkv cert cf cfr ch chap chem chr chs cic circ cit civ cl cm cmd cnr co cod col coll
colo com comp con conc cond conn cons cont coop corr cost cp cpl cr crd cres cresc ct cu d.d d.n.o d.o.o daj dan dat davč ddr dec ded def
del dem dent dept dia dip dipl dir disp diss div do doc dok dol doo dop dott dr dram druž družb drž dt duh dur dvr dwt ea ecc eccl eccles
econ ed edn egipt egr ekon eksp el em enc eng eo ep err esp esq est et etc etn etnogr etnol ev evfem evr ex exc excl exp expl ext exx fa
facs fak faks farm fas fasc fco fcp feb febr fec fed fem ff fff fid fig fil filat film filoz fin fiz fiziol fiziot flam fm fo fol folk fot
fr frag fran franc friz fsc ga gal gastr gdč ge gen geod geog geogr geol geom geotehnol germ gg gimn gl glag glas glasb glav gled gnr go gor
gosp gost gozd gp gr grad graf gram gren grš gs hab hebr hf hist ho hort hrv ia ib ibid id ide idr idridr igr ill im imen imp impf impr in
inc incl ind indus inf inform ing init ins int inv inšp inštr inž ipd iron is islam ist it ital itd itn iur iz izbr izd izg izgr izr izv jak
jam jan jap jav je jez jr jsl jud jug jugoslovan jul jun jur juž jv jz kal kan kand kat kdo kem kip kit kmet knj knjiž kol kom komp konf
kont kor kost kov kp kpfw kr kraj krat kub kult kv kval l.r la lab lat lb ld les let lib lik lingv lit litt lj ljubk ljud ll loc log lov loč
lt m ma madž mag mak manag manjš mar masc mass mat mater max maxmax mb md mdr mech med medic medij medn meh mehč mem menedž mes mess mest
metal meteor meteorol mex mi mikr mil min minn mio misc miss mit mitol mk mkt ml mlad mlle mlr mm mme mn množ mo moj mont moš možn mr mrd
mrs ms msc msgr mt murr mus mut muz na nad nadalj nadom nagl nakl nam namer nan naniz nar nasl nat nav navt nač ned nedol nedov nem neprav
nepreh neskl nestrok nik nizoz nm nn no nom norv notr nov novogr npr ns num ob obd obj obl oblač oblik obr obraz obrt obs obst obt obč oc
oct od odd odg odn odst odv oec off ok okla okr okt ont oo op opis opp opr or orch ord ore oreg org orient orig ork ort os oseb osn ot otr
oz ozir ošk pag pal papir par para parc parl part past pat pdk ped pen perf pert perz pesn pet pev pf pfc ph pharm phil pis pisar pl po pod
podaljš podr pog pogl pogoj pojm pok pokr pol polit polj poljed poljub poljud polu pom pomen pon ponov pop por port pos posl posn pov pp ppl
pr praet prav pravopis pravosl preb pred predl predm predp preds pref preg pregib preh prel prem premen pren prep pres pret prev pribl prid
prih pril prim primerj primor prip pripor prir prisl prist priv proc prof prog proiz prom pron prop prot protest prov ps psih psiht pss pt
publ pz qld qu quad que racc rad rastl razgl razl razv rač rd red ref reg rel relig rep repr rer resp rest ret rev revol rež rib rim rist
rkp rm rod roj rom romun rp rr rt rud rus ruš ry s.p sal sam samogl san sc scen sci scr sdv sed seg sek sen sep sept ser sev sg sgt sh sig
sigg sign sim sin sing sinh skand skl sklad sklanj sklep skr sl slabš slik slov slovak slovan slovaš slovn sn so sob soc sociol sod sopomen
sopr sor sov sovj sp spec spl spr spreg sq sr srb sre sred sredoz srh ss ssp st sta stan stanstar star stcsl ste stil stim stol stom str
stroj strok stsl stud sup supl suppl sv svet sz t.i t.j tab tech ted teh tehn tehnol tek teks tekst tel temp ten teol ter term test th theol
tim tip tisk tisočl tit tj tl tol tolmač tom tor tov tož tr trad traj trans tren trg trib tril trop trp trž ts tt tu tur turiz tvor tvorb tč
ukr ul um umet un univ up upr ur urad us ust utr va val var varn vel ven ver verb vest vet vez vezal vic vis viv viz viš vn vod voj vok vol
vpr vrst vrstil vrtn vs vulg vv vzd vzg vzh vznes vzor wed wg wk zah zaim zak zal zap zasl zastar zavar zač zb združ zg zgod zn znan znanstv
zool zoot zun zv zvd á é ć č čas čeb čet češ čl člen člov čustv đ ľ ł ş š šah šalj šir škofl škot šol šp špan šport št štev števil štud šved
švic ů ű ž žarg žel žen živ žival
-- sr
авг акад апр бр в.д гимн год дец доц инж итд л.к мар мед мн н.е нед нов нпр о.г окт пoн пет проф разр сеп септ сре стр суб тзв ул уто уч феб
чет јан једн јули јуни
-- sv
ang anm apr aug bl.a d.v.s dec doc dr dvs e.d e.kr el eng etc ev exkl f f.d f.kr f.n f.ö feb febr fid fig forts fr.o.m fre förf h.k.h h.m
inkl iofs jan jun jur kap kl kor kr kungl lat lör m.a.o m.fl m.m max milj min mos mt mvh mån nov o.d o.s.v obs okt ons osv p.g.a ph.d proc
prof ref resp s.a.s s.k s.t sep sept sid t.ex t.h t.o.m t.v tel tis tors ung v vol äv övers
-- ti
ኪ.ሜ ዓ.ም
-- tr
a.b.d alb ank apt ar.gör arş.gör as.iz as.i̇z asb astsb av bk bknz bnb bul bçvş böl bşk bştbp cad dak dk doç doğ dr drl dz dz.kuv dz.kuv.k
dzl ecz ekon fak gn gn.kur gnkur gr hs.uzm hst huk hv hv.kuv hv.kuv.k hz hz.öz i̇ng i̇st jeol korg kur kur.bşk kuv ltd m.s m.ö mah max min
müh onb ord org ped prof sb sn sok t.c tbp tel telg tic tug tuğg tümg tğm uzm vb vs y.mim y.müh yar yar.doç yard yard.doç yb yd.sb yrd
yrd.doç yy çev çvş üni ütğm üçvş şb şti
-- tt
авг апр б.э б.э.к гый дек дш июл июн мар млн млрд ноя окт пш сен сш фев чш шб яш җм һ.б һ.б.ш
-- uk
акад бул вул г доц м майд мкр наб обл оз п пл пров просп проф р-н ст ім
"""
